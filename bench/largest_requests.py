"""What the largest request of every API holds up: each array of each request as long as it may be.

    python -m bench.largest_requests                        every API (about 4 minutes)
    python -m bench.largest_requests --only FETCH,METADATA  some of them
    python -m bench.largest_requests --above 15             only what held the loop for 15 ms and more

For each array in a request, at any depth, there is one request in which it has as many elements as a request may have,
of names that exist (`there`) and that don't (`unknown`), and one in which its names are as long as names can be
(`long`). `loop` is the longest turn of the broker's loop in processor time, with the callback that took most of it;
`ApiVersions` is the longest wait of another client, a process of its own, with whatever else the machine does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.prober import Prober
from bench.watched_broker import Watched, described, watched
from moldau.broker.api import Api
from moldau.broker.handlers.table import TABLE
from moldau.core.limits import COORDINATOR_KEYS_MAX, MIB, PRODUCE_ELEMENTS_MAX, REQUEST_ELEMENTS_MAX
from moldau.wire.api import ApiKey
from moldau.wire.messages import (
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.end_txn import EndTxnRequest
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.offset_fetch import OffsetFetchRequestGroup
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.schema import Field, Kind
from tests.differential.batches import batch
from tests.hostile.attacker import Address, Attacker, frame
from tests.hostile.longest import Path as ArrayPath
from tests.hostile.longest import elements, longest, paths

OVERRIDES = {"group.initial.rebalance.delay.ms": 0}
ELEMENTS = REQUEST_ELEMENTS_MAX - 1_000
LONG_CHARS, LONG_BYTES = 30_000, 15 * MIB
BIG, TOPICS, PARTITIONS = "big", 3_000, 10_000
TRANSACTION = "transaction"
BROKER = 1
SETTLE_S = 0.05
PAUSED_MS = 200
LAST = (ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)  # they change what the others ask about


@dataclass(frozen=True, slots=True)
class Deed:
    name: str
    do: Callable[[], Any]


class World:
    """What exists in the broker that is asked."""

    def __init__(self, address: Address) -> None:
        self.client = Attacker(address, wait_s=300)
        self.big_id = bytes(16)
        self.ids: list[bytes] = []
        self.producer = (0, 0)

    def prepare(self) -> None:
        ask = self.client.ask
        for kind in (0, 1):
            ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]), 4)
        named = [(BIG, PARTITIONS)] + [(f"t-{index}", 1) for index in range(TOPICS)]
        topics = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in named]
        for some in (topics[:1], topics[1:]):
            made = ask(CreateTopicsRequest(topics=some, timeout_ms=100_000), 7)
            assert not any(each.error_code for each in made.topics), made.topics[0]
        asked = [MetadataRequestTopic(name=name) for name, _ in named]
        found = {topic.name: topic.topic_id for topic in ask(MetadataRequest(topics=asked), 12).topics}
        self.big_id, *self.ids = [found[name] for name, _ in named]

    def begin(self) -> None:
        """A transaction of a new epoch."""
        for _ in range(100):
            made = self.client.ask(
                InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=600_000), 4
            )
            if made.error_code == 0:
                break
            time.sleep(0.1)
        self.producer = made.producer_id, made.producer_epoch

    def end(self, request: EndTxnRequest) -> None:
        """Its markers are written after the answer."""
        self.client.ask(request, 3)
        time.sleep(3)

    def tell(self, content: bytes) -> bytes | str:
        self.client.send(content)
        return self.client.answer()


@dataclass(frozen=True, slots=True)
class Filler:
    """Makes requests in which one array is long."""

    world: World
    kind: str
    version: int

    def request(self, cls: Any, path: ArrayPath) -> Any:
        count = {"unknown": ELEMENTS, "long": LONG_BYTES // LONG_CHARS}.get(self.kind)
        if count is None:
            count = TOPICS if len(path) == 1 else PARTITIONS
        if cls.API_KEY == ApiKey.FIND_COORDINATOR:
            count = min(count, COORDINATOR_KEYS_MAX)
        elements_max = PRODUCE_ELEMENTS_MAX if cls.API_KEY == ApiKey.PRODUCE else REQUEST_ELEMENTS_MAX
        count = min(count, elements_max - 2)
        return longest(cls, self.version, path, elements_max=elements_max, count=count, value=self._value)

    def _value(self, field: Field, index: int, is_alone: bool) -> Any:
        name = field.name
        if field.type is Kind.STRING:
            return self._text(name, index, is_alone=is_alone)
        if field.type is Kind.UUID:
            if self.kind == "there" and "topic" in name:
                return self.world.big_id if is_alone else self.world.ids[index % TOPICS]
            return index.to_bytes(16, "big")
        if field.type in (Kind.BYTES, Kind.RECORDS):
            return b""
        return self._number(name, field, index)

    def _text(self, name: str, index: int, *, is_alone: bool) -> str:
        if name in ("group_id", "group_instance_id") and is_alone:
            return "group"
        if "transactional_id" in name and is_alone:
            return TRANSACTION
        if name in ("member_id", "rack_id", "protocol_type") and is_alone:
            return {"protocol_type": "consumer"}.get(name, "")
        if self.kind == "long":
            return f"{index:06}" + "x" * (LONG_CHARS - 6)
        if self.kind == "there":
            return BIG if is_alone else f"t-{index % TOPICS}"
        return f"unknown-{index}"

    def _number(self, name: str, field: Field, index: int) -> Any:
        known = {
            "timeout_ms": 100_000,
            "session_timeout_ms": 600_000,
            "rebalance_timeout_ms": 600_000,
            "resource_type": 2,
            "producer_id": self.world.producer[0],
            "producer_epoch": self.world.producer[1],
            "v3_and_below_producer_id": self.world.producer[0],
            "v3_and_below_producer_epoch": self.world.producer[1],
            "generation_id": -1,
            "generation_id_or_member_epoch": -1,
            "session_epoch": -1,
            "partition_max_bytes": 1_000,
            "count": PARTITIONS + 1,
            "num_partitions": 1,
            "replication_factor": 1,
            "timestamp": -1,
            "acks": -1,
            "response_partition_limit": 2_000,
            "include_synonyms": True,
        }
        if name in known:
            return known[name]
        if field.type is not Kind.BOOL and "partition" in name:
            return index
        return BROKER if field.is_array else field.default()


def cases(row: Api, world: World) -> Iterator[tuple[str, bytes]]:
    """The newest version, and the oldest where it has other arrays."""
    cls: Any = row.request
    oldest, newest = row.versions
    versions = [newest] + [oldest] * (set(paths(cls, oldest)) != set(paths(cls, newest)))
    for version in versions:
        for path in paths(cls, version):
            for kind in ("unknown", "there", "long"):
                if "TXN" in row.key.name and kind == "there":
                    world.begin()
                request = Filler(world, kind, version).request(cls, path)
                content = frame(request, version)
                if len(content) < 16 * MIB:
                    yield f"{row.key.name} v{version} {'.'.join(path)} {kind} ({elements(request):,})", content


def special(world: World) -> Iterator[Deed]:
    """Short requests with much to do, and those that need more than one request."""
    yield Deed("METADATA v0, all", lambda: world.tell(frame(MetadataRequest(topics=[]), 0)))
    yield Deed("METADATA v12, all", lambda: world.tell(frame(MetadataRequest(topics=None), 12)))
    records = batch([b"x" * 100], timestamp=int(time.time() * 1000))
    data = [PartitionProduceData(index=index, records=records) for index in range(PARTITIONS)]
    produce = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=BIG, partition_data=data)])
    yield Deed("PRODUCE v9, to 10,000 partitions", lambda: world.tell(frame(produce, 9)))
    groups = [OffsetFetchRequestGroup(group_id="group", topics=None)]
    yield Deed("OFFSET_FETCH v8, all of a group", lambda: world.tell(frame(OffsetFetchRequest(groups=groups), 8)))
    for is_commit in (True, False):
        world.begin()
        add = next(row for row in TABLE if row.key is ApiKey.ADD_PARTITIONS_TO_TXN)
        cls: Any = add.request
        content = frame(Filler(world, "there", 3).request(cls, ("v3_and_below_topics", "partitions")), 3)
        yield Deed("ADD_PARTITIONS_TO_TXN v3, 10,000 partitions", partial(world.tell, content))
        end = EndTxnRequest(
            transactional_id=TRANSACTION,
            producer_id=world.producer[0],
            producer_epoch=world.producer[1],
            committed=is_commit,
        )
        yield Deed("END_TXN v3, 10,000 partitions", partial(world.end, end))


def deeds(world: World, only: list[str]) -> Iterator[Deed]:
    for row in sorted(TABLE, key=lambda row: (row.key in LAST, row.key)):
        if not only or row.key.name in only:
            for name, content in cases(row, world):
                yield Deed(name, partial(world.tell, content))
    for deed in special(world):
        if not only or deed.name.split()[0] in only:
            yield deed


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def measure(broker: Watched, options: argparse.Namespace) -> None:
    world = World(broker.address)
    world.prepare()
    say(f"| request (elements) | took | loop | longest callback | ApiVersions |\n|{'---|' * 5}")
    with Prober(broker.address) as prober:
        for deed in deeds(world, options.only.split(",") if options.only else []):
            time.sleep(SETTLE_S)
            prober.figures()
            begun_s = time.monotonic()
            answer = deed.do()
            took_s = time.monotonic() - begun_s
            time.sleep(SETTLE_S)
            seen, longest_hold = prober.figures(), broker.longest(begun_s)
            held_ms = 0.0 if longest_hold is None else longest_hold.cpu_ms
            if isinstance(answer, str):
                world.client = Attacker(broker.address, wait_s=300)
            if held_ms >= options.above or seen.longest_ms >= 2 * max(options.above, 15):
                refused = ", refused" if isinstance(answer, str) else ""
                say(
                    f"| {deed.name} | {took_s * 1000:.0f} ms{refused} | {described(longest_hold)} "
                    f"| {seen.longest_ms:.0f} ms |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of APIs")
    parser.add_argument("--above", type=float, default=0.0, help="milliseconds of the loop below which nothing is said")
    parser.add_argument("--data-dir", help="where a folder for the data is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.data_dir) as folder, watched(folder, OVERRIDES) as broker:
        measure(broker, options)


if __name__ == "__main__":
    main()
