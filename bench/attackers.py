"""How long a well-behaved client waits while others attack: the 50th and 99th percentile of its requests.

    python -m bench.attackers                          every attack, two seconds each (about 2 minutes)
    python -m bench.attackers --only pipelined,noise --seconds 5
    python -m bench.attackers --secured                strangers at a broker with TLS and logins
    python -m bench.attackers --secured --alone        where nothing else runs: the broker's loop needs no priority
    python -m bench.attackers --secured --alone --rounds 5

Each attack is made as often as there are rounds, and each round begins with the quiet client; the table has medians,
the longest ApiVersions and the most memory.
The broker has the first core. The client, which produces a record, fetches it and asks for ApiVersions in turn, has
the second one, before the attackers, who get what it leaves. The bar: a 99th percentile of at most twice the quiet one
(with --secured: or twice the one beside the same attack on another broker, if that is larger); on a machine with other
work (without --alone) also anything below `FLOOR_MS`, where that decides. No answer to ApiVersions comes after more
than 30 ms, and there are at most 64 MB more memory, which is the peak during the attack.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import socket
import statistics
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import moldau
from moldau.core import limits
from moldau.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from moldau.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from tests.differential import batches
from tests.differential.batches import batch
from tests.hostile.attacker import Address, Attacker, frame, framed, header
from tests.hostile.noise import Noise
from tests.hostile.siege import fetch_request, produce_request
from tests.hostile.test_batches import gzip_bomb, zstd_bomb

OWN, BOMBED, LARGE = "own", "bombed", "large"
TOPICS = 500
FLOOR_MS = 1.0
BAR_P99 = 2.0
BAR_API_VERSIONS_MS = 30.0
CROWD = 1_000
CLIENTS_CORE = min(1, (os.cpu_count() or 1) - 1)
API_VERSIONS = frame(ApiVersionsRequest(), 0)

BAR_MEMORY_MB = 64.0

Attack = Callable[[Address, Event], None]
Connect = Callable[[], Attacker]


@dataclass(slots=True)
class Times:
    every_ms: list[float] = field(default_factory=list)
    api_versions_ms: list[float] = field(default_factory=list)

    def at(self, share: float) -> float:
        ordered = sorted(self.every_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def connections_that_come_and_go(address: Address, stop: Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError), Attacker(address) as client:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_open(address: Address, stop: Event) -> None:
    half = frame(fetch_request(OWN), 12)[:20]
    crowd = [Attacker(address) for _ in range(CROWD)]
    for client in crowd:
        client.send(half)
    stop.wait()
    for client in crowd:
        client.__exit__()


def one_byte_at_a_time(address: Address, stop: Event) -> None:
    whole = frame(MetadataRequest(topics=[]), 12)
    crowd = [Attacker(address) for _ in range(100)]
    for client in crowd:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.socket.setblocking(False)
    while not stop.is_set():
        for byte in whole:
            for client in crowd:
                client.send(bytes((byte,)))
        for client in crowd:
            with contextlib.suppress(OSError):
                client.socket.recv(1 << 16)


def flood(address: Address, stop: Event, stream: bytes, clients: int) -> None:
    """Send without end, and read what comes as fast as it comes."""
    crowd = [Attacker(address) for _ in range(clients)]
    left = {client: memoryview(stream) for client in crowd}
    for client in crowd:
        client.socket.setblocking(False)
    while not stop.is_set():
        for client in crowd:
            with contextlib.suppress(BlockingIOError):
                left[client] = left[client][client.socket.send(left[client]) :] or memoryview(stream)
            with contextlib.suppress(BlockingIOError):
                while client.socket.recv(1 << 20):
                    pass
    for client in crowd:
        client.__exit__()


def pipelined(address: Address, stop: Event) -> None:
    flood(address, stop, API_VERSIONS * 9_000, 1)


def pipelined_by_ten(address: Address, stop: Event) -> None:
    flood(address, stop, API_VERSIONS * 9_000, 10)


def pipelined_metadata(address: Address, stop: Event) -> None:
    flood(address, stop, frame(MetadataRequest(topics=None), 12) * 1_000, 4)


def bad_frames(address: Address, stop: Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError), Attacker(address) as client:
            client.send(framed(header(3, 1, flexible=False) + struct.pack(">i", 2**31 - 1)))
            client.answer()


def another_protocol(address: Address, stop: Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError), Attacker(address) as client:
            client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            client.answer()


def noise(address: Address, stop: Event) -> None:
    sound = Noise(1, keep_off=frozenset({OWN}))
    client = Attacker(address, wait_s=0.2)
    while not stop.is_set():
        client.send(framed(sound.content(1)[2]))
        with contextlib.suppress(TimeoutError):
            if isinstance(client.answer(), str):
                client.__exit__()
                client = Attacker(address, wait_s=0.2)


@cache
def packed(codec: int) -> bytes:
    """A gigabyte of nothing, made once and before anybody attacks."""
    return gzip_bomb() if codec == batches.GZIP else zstd_bomb()


def bombs(address: Address, stop: Event, codec: int) -> None:
    now_ms = int(time.time() * 1000)
    request = frame(produce_request(BOMBED, batch([b"x"], timestamp=now_ms, raw=packed(codec), attributes=codec)), 9)
    with Attacker(address) as client:
        while not stop.is_set():
            client.send(request)
            client.answer()


def gzip_bombs(address: Address, stop: Event) -> None:
    bombs(address, stop, batches.GZIP)


def zstd_bombs(address: Address, stop: Event) -> None:
    bombs(address, stop, batches.ZSTD)


def large_frames_that_stop(address: Address, stop: Event) -> None:
    start = struct.pack(">i", limits.FRAME_BYTES_MAX) + header(0, 9, flexible=True)
    while not stop.is_set():
        crowd = [Attacker(address, wait_s=1) for _ in range(20)]
        for client in crowd:
            client.send(start + bytes(512 * limits.KIB))
        for client in crowd:
            client.__exit__()


def fifty_thousand_names(address: Address, stop: Event) -> None:
    """As many in one request as may be."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=str(index)) for index in range(49_999)]
    content = frame(DescribeConfigsRequest(resources=resources), 4)
    with Attacker(address, wait_s=60) as client:
        while not stop.is_set():
            client.send(content)
            client.answer()


def answers_that_nobody_reads(address: Address, stop: Event) -> None:
    asked = frame(fetch_request(LARGE), 12) * 100
    while not stop.is_set():
        crowd = [Attacker(address) for _ in range(30)]
        for client in crowd:
            client.socket.setblocking(False)
            client.send(asked)
        time.sleep(0.2)
        for client in crowd:
            client.__exit__()


ATTACKS: tuple[Attack, ...] = (
    connections_that_come_and_go,
    half_open,
    one_byte_at_a_time,
    pipelined,
    pipelined_by_ten,
    pipelined_metadata,
    bad_frames,
    another_protocol,
    noise,
    gzip_bombs,
    zstd_bombs,
    large_frames_that_stop,
    fifty_thousand_names,
    answers_that_nobody_reads,
)


def show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def create(client: Attacker, name: str, **configs: str) -> None:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)
    made = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    assert made.topics[0].error_code == 0, made


def prepare(address: Address) -> None:
    with Attacker(address) as client:
        create(client, OWN)
        create(client, BOMBED, cleanup_policy="compact")
        create(client, LARGE)
        topics = [CreatableTopic(name=f"t-{index}", num_partitions=1, replication_factor=1) for index in range(TOPICS)]
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
        client.ask(FindCoordinatorRequest(key="g"), 2)
        for _ in range(4):
            client.ask(produce_request(LARGE, batch([bytes(250_000)], timestamp=int(time.time() * 1000))), 9)


def measure(connect: Connect, seconds: float) -> Times:
    times = Times()
    record = produce_request(OWN, batch([b"x" * 100], timestamp=int(time.time() * 1000)))
    with connect() as client:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            began = time.perf_counter()
            stored = client.ask(record, 9).responses[0].partition_responses[0]
            wanted = fetch_request(OWN)
            wanted.topics[0].partitions[0].fetch_offset = stored.base_offset
            between = time.perf_counter()
            client.ask(wanted, 12)
            asked = time.perf_counter()
            client.ask(ApiVersionsRequest(), 0)
            done = time.perf_counter()
            times.every_ms += [(between - began) * 1000, (asked - between) * 1000, (done - asked) * 1000]
            times.api_versions_ms.append((done - asked) * 1000)
            time.sleep(0.001)
    return times


def go_first(process_id: int) -> None:
    """Before other work on the machine, and before the attackers, who share the client's core: if that is allowed.

    Only the thread of the event loop: others of its process would take turns of a tenth of a second with it.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(process_id, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(10))


def attacking(attack: Attack, address: Address, stop: Event) -> None:
    with contextlib.suppress(OSError, KeyboardInterrupt):
        attack(address, stop)


def beside(attack: Attack, address: Address, seconds: float, connect: Connect) -> Times:
    stop = multiprocessing.Event()
    attacker = multiprocessing.Process(target=attacking, args=(attack, address, stop), daemon=True)
    attacker.start()
    time.sleep(0.7)  # it gets going
    times = measure(connect, seconds)
    stop.set()
    attacker.join(5)
    if attacker.is_alive():
        attacker.kill()
        attacker.join()
    time.sleep(0.3)
    return times


def memory_mb(process_id: int, what: str = "VmRSS") -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) / 1024


@dataclass(frozen=True, slots=True)
class Attacked:
    """An attack on the client's broker and, to tell what the machine has to do with it, on another."""

    attack: Attack
    address: Address
    elsewhere: Attack | None = None
    elsewhere_address: Address = ("", 0)


@dataclass(slots=True)
class Rounds:
    """One attack, again and again."""

    quiet: list[Times] = field(default_factory=list)
    elsewhere: list[Times] = field(default_factory=list)
    attacked: list[Times] = field(default_factory=list)
    grown_mb: float = 0.0

    def take(self, one: Attacked, connect: Connect, *, process_id: int, seconds: float) -> None:
        self.quiet.append(measure(connect, seconds))
        if one.elsewhere is not None:
            self.elsewhere.append(beside(one.elsewhere, one.elsewhere_address, seconds, connect))
        before_mb = memory_mb(process_id)
        Path(f"/proc/{process_id}/clear_refs").write_text("5")  # the peak is counted anew
        self.attacked.append(beside(one.attack, one.address, seconds, connect))
        self.grown_mb = max(self.grown_mb, memory_mb(process_id, "VmHWM") - before_mb)


def median_ms(times: Sequence[Times], share: float) -> float:
    return statistics.median(each.at(share) for each in times)


def longest_ms(times: Sequence[Times]) -> float:
    return max(max(each.api_versions_ms) for each in times)


def run(
    attacks: Sequence[Attacked], connect: Connect, *, process_id: int, seconds: float, rounds: int, floor_ms: float
) -> int:
    """How many attacks missed the bar."""
    show("| attack | quiet p50, p99 | p50 ms | p99 ms | to quiet | elsewhere | to that | longest ApiVersions | MB |")
    show("|---|---|---|---|---|---|---|---|---|")
    measure(connect, 1.0)  # a broker's first requests are its slowest
    missed = 0
    for each in attacks:
        found = Rounds()
        for _ in range(rounds):
            found.take(each, connect, process_id=process_id, seconds=seconds)
        quiet_ms, p99_ms = median_ms(found.quiet, 0.99), median_ms(found.attacked, 0.99)
        beside_ms = median_ms(found.elsewhere or found.quiet, 0.99)
        longest, ratio = longest_ms(found.attacked), p99_ms / max(beside_ms, quiet_ms)
        is_slow = ratio > BAR_P99 and p99_ms > floor_ms
        missed += is_slow or longest > BAR_API_VERSIONS_MS or found.grown_mb > BAR_MEMORY_MB
        quiet = f"{median_ms(found.quiet, 0.5):.2f}, {quiet_ms:.2f}"
        other = f"{beside_ms:.2f} | {p99_ms / beside_ms:.1f}" if each.elsewhere else " | "
        figures = f"{quiet} | {median_ms(found.attacked, 0.5):.2f} | {p99_ms:.2f} | {p99_ms / quiet_ms:.1f} | {other}"
        show(f"| {each.attack.__name__.replace('_', ' ')} | {figures} | {longest:.1f} | {found.grown_mb:.0f} |")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of attacks")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--secured", action="store_true")
    parser.add_argument("--alone", action="store_true", help="give the broker no priority: nothing else runs here")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else []
    show(f"load {os.getloadavg()[0]:.1f}")
    how: dict[str, Any] = {"seconds": options.seconds, "rounds": options.rounds}
    how["floor_ms"] = 0.0 if options.alone else FLOOR_MS
    if options.secured:
        from bench import secured_attackers

        return secured_attackers.run_all(names, how, is_alone=options.alone)
    wanted = [attack for attack in ATTACKS if not names or attack.__name__ in names]
    with moldau.run() as broker:
        address = broker.host, broker.port
        prepare(address)
        for codec in (batches.GZIP, batches.ZSTD):
            packed(codec)
        place(broker.pid, is_alone=options.alone)
        attacked = [Attacked(attack, address) for attack in wanted]
        missed = run(attacked, partial(Attacker, address), process_id=broker.pid, **how)
    return 1 if missed else 0


def place(process_id: int, *, is_alone: bool) -> None:
    """The broker on the first core, this client and the attackers on the second.

    A loop that goes first and never rests loses its core for 50 ms of a second, if anything else waits for that.
    """
    os.sched_setaffinity(process_id, {0})
    os.sched_setaffinity(0, {CLIENTS_CORE})
    if not is_alone:
        go_first(process_id)
    go_first(0)


if __name__ == "__main__":
    sys.exit(main())
