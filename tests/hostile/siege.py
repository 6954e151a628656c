"""What must hold while a broker is attacked: little memory, an undisturbed neighbour, stored bytes as they were."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from moldau.embedded import EmbeddedBroker
from moldau.wire.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from moldau.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.differential.batches import batch
from tests.hostile.attacker import Address, Attacker

GROWTH_MB_MAX = 64.0
ANSWER_S_MAX = 3.0  # far above a quiet broker's millisecond, for the attacker's process shares the machine's cores
KEPT = "kept"


@dataclass(slots=True)
class Victim:
    """A broker with something to lose."""

    broker: EmbeddedBroker
    kept_records: bytes = field(default_factory=lambda: batch([b"one", b"two"], timestamp=int(time.time() * 1000)))

    @property
    def address(self) -> Address:
        return self.broker.host, self.broker.port

    def memory_mb(self, what: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.broker.pid}/status").read_text()
        found = re.search(rf"{what}:\s+(\d+)", status)
        assert found
        return int(found[1]) / 1024

    def forget_peak(self) -> None:
        """Let the kernel count the highest memory use anew."""
        Path(f"/proc/{self.broker.pid}/clear_refs").write_text("5")

    def stored(self) -> dict[str, str]:
        """Every record of users' topics on disk, as a digest per segment; asking for a coordinator may add our own."""
        segments = sorted(self.broker.data_dir.glob("[!_]*/*.log"))
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in segments}

    def create(self, name: str, **configs: str) -> None:
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)
        with Attacker(self.address) as client:
            made = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert made.topics[0].error_code == 0, made

    def produce(self, topic: str, records: bytes) -> int:
        """The error code of a partition's answer."""
        with Attacker(self.address) as client:
            return int(client.ask(produce_request(topic, records), 9).responses[0].partition_responses[0].error_code)


def produce_request(topic: str, records: bytes | None, *, acks: int = -1) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    data = [TopicProduceData(name=topic, partition_data=[partition])]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=data)


def fetch_request(topic: str, *, wait_ms: int = 0, max_bytes: int = 1 << 20) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    wanted = FetchTopic(topic=topic, partitions=[partition])
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=max_bytes, topics=[wanted])


class Neighbour:
    """A well-behaved client that reads the kept topic again and again, and remembers how long each answer took."""

    def __init__(self, victim: Victim) -> None:
        self.victim = victim
        self.answer_s: list[float] = []
        self.trouble: list[str] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)

    def read(self) -> None:
        try:
            with Attacker(self.victim.address) as client:
                while not self.stopping.wait(0.005):
                    begun = time.monotonic()
                    answer = client.ask(fetch_request(KEPT), 12)
                    self.answer_s.append(time.monotonic() - begun)
                    got = bytes(answer.responses[0].partitions[0].records)
                    assert got[61:] == self.victim.kept_records[61:], "the kept records are not what was stored"
        except Exception as wrong:
            self.trouble.append(repr(wrong))


@contextmanager
def unharmed(victim: Victim, *, logged: str | None = None, lines_max: int = 1) -> Iterator[None]:
    """Attack inside the block. `logged` is a pattern for the line, or the few lines, that the broker must write."""
    stored, memory_mb, printed = victim.stored(), victim.memory_mb(), len(victim.broker.output())
    victim.forget_peak()
    neighbour = Neighbour(victim)
    neighbour.thread.start()
    try:
        yield
    finally:
        enough = time.monotonic() + 10
        while len(neighbour.answer_s) < 5 and not neighbour.trouble and time.monotonic() < enough:
            time.sleep(0.01)
        neighbour.stopping.set()
        neighbour.thread.join()
    assert not neighbour.trouble
    assert max(neighbour.answer_s) < ANSWER_S_MAX
    grown_mb = victim.memory_mb("VmHWM") - memory_mb
    assert grown_mb <= GROWTH_MB_MAX, f"the broker grew by {grown_mb:.0f} MB"
    assert victim.stored() == stored
    lines = victim.broker.output()[printed:].strip().splitlines()
    assert not [line for line in lines if "Traceback" in line or "failed:" in line], "\n".join(lines)
    if logged is not None:
        assert 1 <= len(lines) <= lines_max, "\n".join(lines)
        assert all(re.search(logged, line) for line in lines), "\n".join(lines)
