"""Fetch without sessions: offsets, limits, addressing, epochs and waiting."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.batches import GZIP, batch
from tests.differential.scenarios.produce import NOWHERE
from tests.differential.schema import ZERO_UUID, versions
from tests.differential.world import NOW_MS, Topic, World

AMPLE_BYTES = 1 << 20


def wanted(topic: Topic, *partitions: dict[str, Any]) -> dict[str, Any]:
    """The topic of a Fetch request, addressed both ways; the version decides which of them is sent."""
    listed = [{"partition_max_bytes": AMPLE_BYTES} | one for one in partitions or ({},)]
    return {"topic": topic.name, "topic_id": topic.id, "partitions": listed}


def fetch(world: World, version: int, note: str, *topics: dict[str, Any], **more: Any) -> Any:
    request = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": AMPLE_BYTES, "topics": list(topics)} | more
    return world.ask("Fetch", version, note, **request)


def filled(world: World, suffix: str = "t") -> Topic:
    """Three batches of three records: offsets 0 to 8."""
    topic = world.topic(suffix)
    world.fill(topic, *(batch([b"a" * 10, b"b" * 20, b"c"], timestamp=NOW_MS + 10 * i) for i in range(3)))
    return topic


def every_version_reads(world: World) -> None:
    topic = filled(world)
    for version in versions("Fetch"):
        fetch(world, version, "all", wanted(topic))
        fetch(world, version, "end", wanted(topic, {"fetch_offset": 9}))


def offsets(world: World) -> None:
    topic = filled(world)
    for offset in (0, 1, 2, 3, 7, 8, 9, 10, 1000, -1, -2, 1 << 62):
        for version in (4, 11, 13):
            fetch(world, version, f"offset {offset}", wanted(topic, {"fetch_offset": offset}))


def size_limits(world: World) -> None:
    topic = filled(world)
    for limit in (0, 1, 60, 120, 121, 122, 250, -1):
        fetch(world, 12, f"partition limit {limit}", wanted(topic, {"partition_max_bytes": limit}))
        fetch(world, 12, f"limit {limit}", wanted(topic), max_bytes=limit)
        middle = {"fetch_offset": 4, "partition_max_bytes": limit}
        fetch(world, 4, f"partition limit {limit} from the middle", wanted(topic, middle))


def limits_over_partitions(world: World) -> None:
    """The first partition with data gives at least one batch; those behind it only what still fits."""
    topic = world.topic("t", partitions=3)
    for partition in range(3):
        world.fill(topic, *(batch([b"x" * 50], timestamp=NOW_MS) for _ in range(3)), partition=partition)
    for limit in (1, 150, 300, 500):
        for order in ((0, 1, 2), (2, 0, 1)):
            partitions = [{"partition": partition} for partition in order]
            fetch(world, 12, f"limit {limit} order {order}", wanted(topic, *partitions), max_bytes=limit)
    behind = [{"partition": 0, "fetch_offset": 3}, {"partition": 1, "partition_max_bytes": 1}, {"partition": 2}]
    fetch(world, 12, "first has nothing", wanted(topic, *behind), max_bytes=200)
    erring = [{"partition": 0, "fetch_offset": 99}, {"partition": 1}]
    fetch(world, 12, "first out of range", wanted(topic, *erring), max_bytes=10)


def a_compressed_middle(world: World) -> None:
    topic = world.topic("t")
    world.fill(topic, batch([b"a" * 100] * 5, timestamp=NOW_MS, codec=GZIP), batch([b"b"], timestamp=NOW_MS))
    for offset in (0, 3, 4, 5):
        fetch(world, 12, f"offset {offset}", wanted(topic, {"fetch_offset": offset}))


def nowhere(world: World) -> None:
    topic = filled(world)
    for version in versions("Fetch"):
        fetch(world, version, "unknown topic", wanted(NOWHERE))
        fetch(world, version, "unknown partition", wanted(topic, {"partition": 7}, {"partition": -1}))
        fetch(world, version, "unknown beside known", wanted(NOWHERE), wanted(topic))
    fetch(world, 13, "zero id", wanted(Topic("", ZERO_UUID)))
    fetch(world, 12, "empty name", wanted(Topic("", ZERO_UUID)))
    fetch(world, 12, "invalid name", wanted(Topic("../up", ZERO_UUID)))


def nothing_in_it(world: World) -> None:
    topic = filled(world)
    for version in versions("Fetch"):
        fetch(world, version, "no topics")
        fetch(world, version, "no partitions", {"topic": topic.name, "topic_id": topic.id, "partitions": []})


def twice_in_one_request(world: World) -> None:
    topic = filled(world)
    for version in (4, 12, 13):
        fetch(world, version, "partition twice", wanted(topic, {"fetch_offset": 0}, {"fetch_offset": 6}))
        fetch(world, version, "topic twice", wanted(topic), wanted(topic, {"fetch_offset": 6}))


def leader_epochs(world: World) -> None:
    topic = filled(world)
    for version in (9, 11, 12, 13):
        for epoch in (-1, 0, 1, 99, -5):
            fetch(world, version, f"current epoch {epoch}", wanted(topic, {"current_leader_epoch": epoch}))
    for epoch in (-1, 0, 1, 5):
        for offset in (3, 9, 12):
            last = {"last_fetched_epoch": epoch, "fetch_offset": offset}
            fetch(world, 12, f"last fetched epoch {epoch} at {offset}", wanted(topic, last))


def isolation(world: World) -> None:
    topic = filled(world)
    for version in (4, 11, 12, 17):
        for level in (0, 1):
            fetch(world, version, f"isolation {level}", wanted(topic), isolation_level=level)
    fetch(world, 12, "unknown isolation", wanted(topic), isolation_level=2)


def racks(world: World) -> None:
    topic = filled(world)
    for version in (11, 12, 18):
        fetch(world, version, "rack", wanted(topic), rack_id="somewhere")


def replicas(world: World) -> None:
    """A client that says it is a broker."""
    topic = filled(world)
    for replica in (0, 1, 7, -2, -3):
        fetch(world, 12, f"replica {replica}", wanted(topic), replica_id=replica)
        state = {"replica_id": replica, "replica_epoch": 1}
        fetch(world, 17, f"replica {replica}", wanted(topic), replica_state=state)


def waiting(world: World) -> None:
    """Who waits and who does not, to the nearest tenth of a second."""
    topic = filled(world)
    cases: dict[str, dict[str, Any]] = {
        "data is there": {"max_wait_ms": 400, "min_bytes": 1},
        "too little data": {"max_wait_ms": 400, "min_bytes": 100_000},
        "no minimum": {"max_wait_ms": 400, "min_bytes": 0},
        "no wait": {"max_wait_ms": 0, "min_bytes": 100_000},
        "negative wait": {"max_wait_ms": -1, "min_bytes": 100_000},
        "minimum beyond the limit": {"max_wait_ms": 400, "min_bytes": 100_000, "max_bytes": 100},
    }
    for what, more in cases.items():
        for offset in (0, 9, 99):
            begun = time.monotonic()
            fetch(world, 12, f"{what}, offset {offset}", wanted(topic, {"fetch_offset": offset}), **more)
            world.note(f"waited, {what}, offset {offset}", time.monotonic() - begun > 0.3)


def woken(world: World) -> None:
    """A parked fetch is answered by the records that arrive."""
    topic = world.topic("t")
    for version in (4, 12, 13):
        peer = world.extra_peer()
        end = {"fetch_offset": (4, 12, 13).index(version)}
        peer.tell("Fetch", version, max_wait_ms=3_500, min_bytes=1, topics=[wanted(topic, end)])
        world.fill(topic, batch([b"woken"], timestamp=NOW_MS))
        world.note(f"woken v{version}", peer.answer("Fetch", version))


SCENARIOS = (
    every_version_reads,
    offsets,
    size_limits,
    limits_over_partitions,
    a_compressed_middle,
    nowhere,
    nothing_in_it,
    twice_in_one_request,
    leader_epochs,
    isolation,
    racks,
    replicas,
    waiting,
    woken,
)
