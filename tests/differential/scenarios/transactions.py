"""Transactions of both protocols: producers and epochs, partitions, outcomes, markers, offsets, listings, features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.differential.batches import CONTROL, TRANSACTIONAL, batch
from tests.differential.scenarios.groups import coordinator as group_coordinator
from tests.differential.scenarios.groups import group
from tests.differential.scenarios.produce import NOWHERE, end_offset, send, stored
from tests.differential.schema import versions
from tests.differential.world import NOW_MS, Topic, World

CONCURRENT, LOADING, NOT_COORDINATOR, UNAVAILABLE = 51, 14, 16, 15
TIMEOUT_MS = 60_000

Producer = tuple[int, int]


def transactional_id(world: World, suffix: str = "id") -> str:
    """An id of this scenario's own whose coordinator answers."""
    name = f"{world.name}-{suffix}"

    def ready() -> bool:
        world.quietly("FindCoordinator", 3, key=name, key_type=1)
        answer = world.quietly("DescribeTransactions", 0, transactional_ids=[name])
        return answer["transaction_states"][0]["error_code"] not in (LOADING, NOT_COORDINATOR, UNAVAILABLE)

    world.until(ready, f"the coordinator of {name}")
    return name


def init(world: World, version: int, note: str, name: str, **more: Any) -> Producer:
    fields = {"transactional_id": name, "transaction_timeout_ms": TIMEOUT_MS} | more
    settle(world, name)
    answer = world.ask("InitProducerId", version, note, **fields)
    return answer["producer_id"], answer["producer_epoch"]


def settle(world: World, name: str) -> None:
    """Until the markers are written; how long that takes is each broker's own affair."""

    def settled() -> bool:
        answer = world.quietly("DescribeTransactions", 0, transactional_ids=[name])
        return not answer["transaction_states"][0]["transaction_state"].startswith("Prepare")

    world.until(settled, f"the transaction of {name} to be complete")


def add(world: World, version: int, note: str, name: str, producer: Producer, topics: Iterable[Any]) -> None:
    listed = [{"name": topic, "partitions": list(indexes)} for topic, indexes in topics]
    settle(world, name)
    if version < 4:
        fields = {
            "v3_and_below_transactional_id": name,
            "v3_and_below_producer_id": producer[0],
            "v3_and_below_producer_epoch": producer[1],
            "v3_and_below_topics": listed,
        }
    else:
        transaction = {
            "transactional_id": name,
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "verify_only": "verify" in note,
            "topics": listed,
        }
        fields = {"transactions": [transaction]}
    world.ask("AddPartitionsToTxn", version, note, **fields)


def end(world: World, version: int, note: str, name: str, producer: Producer, *, committed: bool) -> Producer:
    settle(world, name)
    answer = world.ask(
        "EndTxn",
        version,
        note,
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=committed,
    )
    settle(world, name)
    return answer.get("producer_id", -1), answer.get("producer_epoch", -1)


def sent(producer: Producer, sequence: int = 0, *, count: int = 1, flags: int = TRANSACTIONAL) -> bytes:
    return batch([b"x"] * count, timestamp=NOW_MS, producer=(*producer, sequence), attributes=flags)


def write(world: World, version: int, note: str, topic: Topic, name: str | None, records: bytes) -> None:
    send(world, version, note, topic, records, transactional_id=name)


def describe(world: World, name: str, note: str = "") -> None:
    settle(world, name)
    world.ask("DescribeTransactions", 0, note, transactional_ids=[name])


def committed_records(world: World, topic: Topic) -> None:
    wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    for isolation in (0, 1):
        world.ask(
            "Fetch",
            12,
            f"isolation {isolation}",
            max_wait_ms=0,
            isolation_level=isolation,
            topics=[{"topic": topic.name, "partitions": wanted}],
        )


def epochs(world: World) -> None:
    name = transactional_id(world)
    for version in versions("InitProducerId"):
        init(world, version, "", name)
    producer = init(world, 4, "again", name)
    for note, known in (("own", producer), ("own again", producer), ("older", (producer[0], 0)), ("nobody's", (99, 0))):
        init(world, 5, note, name, producer_id=known[0], producer_epoch=known[1])
    for timeout_ms in (0, -1, 900_000, 900_001):
        init(world, 4, f"timeout {timeout_ms}", name, transaction_timeout_ms=timeout_ms)
    init(world, 3, "fenced, old client", name, producer_id=99, producer_epoch=3)
    describe(world, name)


def first_protocol(world: World) -> None:
    topic, name = world.topic("t"), transactional_id(world)
    producer = init(world, 4, "", name)
    write(world, 11, "not added", topic, name, sent(producer))
    write(world, 9, "not added, old client", topic, name, sent(producer))
    sequence = 0
    for version in (0, 1, 2, 3, 4):
        add(world, min(version, 3), "", name, producer, [(topic.name, [0])])
        write(world, 11 - version, "added", topic, name, sent(producer, sequence, count=2))
        write(world, 11 - version, "more", topic, name, sent(producer, sequence + 2))
        sequence += 3
        describe(world, name, "open")
        end(world, version, "", name, producer, committed=version % 2 == 0)
        end(world, version, "again", name, producer, committed=version % 2 == 0)
        end(world, version, "otherwise", name, producer, committed=version % 2 == 1)
        describe(world, name, "ended")
        committed_records(world, topic)
    world.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


def second_protocol(world: World) -> None:
    topic, name = world.topic("t"), transactional_id(world)
    producer = init(world, 5, "", name)
    for committed in (True, False, True):
        write(world, 12, "first", topic, name, sent(producer))
        write(world, 13, "more", topic, name, sent(producer, 1))
        describe(world, name, "open")
        after = end(world, 5, "", name, producer, committed=committed)
        end(world, 5, "again", name, producer, committed=committed)
        end(world, 5, "otherwise", name, producer, committed=not committed)
        write(world, 12, "late", topic, name, sent(producer, 2))
        producer = after
        committed_records(world, topic)
    end(world, 5, "commit of nothing", name, producer, committed=True)
    producer = end(world, 5, "abort of nothing", name, producer, committed=False)
    describe(world, name)
    write(world, 12, "after nothing", topic, name, sent(producer))
    end(world, 5, "", name, producer, committed=True)
    committed_records(world, topic)


def ending_wrongly(world: World) -> None:
    topic, name = world.topic("t"), transactional_id(world)
    stranger = transactional_id(world, "stranger")
    for version in versions("EndTxn"):
        end(world, version, "unknown id", stranger, (1, 0), committed=True)
        world.ask("EndTxn", version, "no id", transactional_id="", producer_id=1, producer_epoch=0, committed=True)
    producer = init(world, 4, "", name)
    for version in versions("EndTxn"):
        for note, other in (("newer", (producer[0], 9)), ("older", (producer[0], -1)), ("another", (999_999, 0))):
            end(world, version, note, name, other, committed=True)
    end(world, 4, "commit of nothing", name, producer, committed=True)
    end(world, 4, "abort of nothing", name, producer, committed=False)
    add(world, 3, "", name, producer, [(topic.name, [0])])
    init(world, 4, "while open", name)
    describe(world, name, "interrupted")
    for version in (0, 1, 2, 4, 5):
        end(world, version, "fenced", name, producer, committed=True)


def adding(world: World) -> None:
    topic, name = world.topic("t", partitions=3), transactional_id(world)
    stranger = transactional_id(world, "stranger")
    producer = init(world, 4, "", name)
    for version in versions("AddPartitionsToTxn"):
        add(world, version, "two", name, producer, [(topic.name, [0, 1])])
        add(world, version, "one unknown", name, producer, [(topic.name, [0, 2, 7]), (NOWHERE.name, [0])])
        add(world, version, "fenced", name, (producer[0], 7), [(topic.name, [0])])
        add(world, version, "of another", name, (999_999, 0), [(topic.name, [0])])
        add(world, version, "unknown id", stranger, producer, [(topic.name, [0])])
    for version in (4, 5):
        add(world, version, "verify", name, producer, [(topic.name, [0, 2])])
        add(world, version, "verify fenced", name, (producer[0], 7), [(topic.name, [0])])
        add(world, version, "verify unknown id", stranger, producer, [(topic.name, [0])])
    describe(world, name)
    end(world, 4, "", name, producer, committed=True)
    add(world, 4, "verify after the end", name, producer, [(topic.name, [0])])


def producing_wrongly(world: World) -> None:
    topic, name = world.topic("t"), transactional_id(world)
    producer = init(world, 4, "", name)
    for version in (3, 9, 10, 11, 12, 13):
        write(world, version, "no id", topic, None, sent(producer))
        write(world, version, "fenced", topic, name, sent((producer[0], 7)))
        write(world, version, "of another", topic, name, sent((999_999, 0)))
        write(world, version, "unknown id", topic, f"{name}-stranger", sent(producer))
        write(world, version, "control", topic, name, sent(producer, flags=TRANSACTIONAL | CONTROL))
    write(world, 9, "not transactional", topic, name, sent(producer, flags=0))
    end_offset(world, topic)


def commit_offsets(world: World, version: int, note: str, fields: dict[str, Any], topic: Topic, offset: int) -> None:
    partitions = [{"partition_index": index, "committed_offset": offset, "committed_metadata": "m"} for index in (0, 5)]
    world.ask(
        "TxnOffsetCommit",
        version,
        note,
        topics=[{"name": topic.name, "partitions": partitions}, {"name": NOWHERE.name, "partitions": partitions[:1]}],
        **fields,
    )


def offsets(world: World) -> None:
    group_coordinator(world)
    topic, name, group_id = world.topic("t"), transactional_id(world), group(world, "g")
    producer = init(world, 4, "", name)

    def fields() -> dict[str, Any]:
        return {
            "transactional_id": name,
            "group_id": group_id,
            "producer_id": producer[0],
            "producer_epoch": producer[1],
        }

    def fetch(note: str) -> None:
        wanted = [{"name": topic.name, "partition_indexes": [0]}]
        for stable in (False, True):
            world.ask(
                "OffsetFetch", 7, f"{note}, stable {stable}", group_id=group_id, topics=wanted, require_stable=stable
            )

    for version in versions("TxnOffsetCommit"):
        settle(world, name)
        if version < 5:
            commit_offsets(world, version, "not added", fields(), topic, 7)
            world.ask("AddOffsetsToTxn", min(version, 4), "", **fields())
        commit_offsets(world, version, "", fields(), topic, 10 + version)
        fetch("open")
        after = end(world, version, "", name, producer, committed=version % 2 == 1)
        fetch("ended")
        if version == 5:
            producer = after
    stale = fields() | {"producer_epoch": 0, "producer_id": producer[0] + 100_000}
    for version in (0, 2, 4):
        world.ask("AddOffsetsToTxn", version, "of another", **stale)
    for version in (0, 4, 5):
        commit_offsets(world, version, "of another", stale, topic, 1)
        commit_offsets(world, version, "no group", fields() | {"group_id": ""}, topic, 1)
    commit_offsets(world, 5, "old generation", fields() | {"generation_id": 3, "member_id": "m"}, topic, 1)


def markers_by_hand(world: World) -> None:
    topic, name = world.topic("t"), transactional_id(world)
    producer = init(world, 4, "", name)
    add(world, 3, "", name, producer, [(topic.name, [0])])
    write(world, 9, "", topic, name, sent(producer))
    committed_records(world, topic)
    for version in versions("WriteTxnMarkers"):
        for epoch in (-1, 0, 0, 1):
            marker = {
                "producer_id": producer[0],
                "producer_epoch": epoch,
                "transaction_result": False,
                "coordinator_epoch": 0,
                "topics": [
                    {"name": topic.name, "partition_indexes": [0]},
                    {"name": NOWHERE.name, "partition_indexes": [0]},
                ],
            }
            world.ask("WriteTxnMarkers", version, f"epoch {epoch}", markers=[marker])
    world.ask("WriteTxnMarkers", 1, "none", markers=[])
    committed_records(world, topic)
    stored(world, topic)


def listings(world: World) -> None:
    name = transactional_id(world)
    producer = init(world, 4, "", name)
    for version in versions("ListTransactions"):
        for note, filters in (
            ("of the producer", {"producer_id_filters": [producer[0]]}),
            ("empty", {"producer_id_filters": [producer[0]], "state_filters": ["Empty"]}),
            ("open", {"producer_id_filters": [producer[0]], "state_filters": ["Ongoing"]}),
            ("nonsense", {"producer_id_filters": [producer[0]], "state_filters": ["Nonsense", "Empty"]}),
        ):
            world.ask("ListTransactions", version, note, **filters)
    for pattern in (f"{name}.*", "nobody", "(", ""):
        fields = {"producer_id_filters": [producer[0]], "transactional_id_pattern": pattern}
        world.ask("ListTransactions", 2, f"pattern {pattern}", **fields)
    world.ask("DescribeTransactions", 0, "strangers", transactional_ids=["", f"{name}-stranger"])


def features(world: World) -> None:
    for version in versions("UpdateFeatures"):
        for note, update in (
            ("too high", {"feature": "transaction.version", "max_version_level": 9}),
            ("unknown", {"feature": "nonsense", "max_version_level": 1}),
            ("lower without saying so", {"feature": "transaction.version", "max_version_level": 1}),
            ("as it is", {"feature": "transaction.version", "max_version_level": 2}),
            ("negative", {"feature": "transaction.version", "max_version_level": -1}),
            ("of a kind", {"feature": "transaction.version", "max_version_level": 2, "upgrade_type": 9}),
        ):
            world.ask("UpdateFeatures", version, note, feature_updates=[update])
        world.ask("UpdateFeatures", version, "none", feature_updates=[])
    allowed = {"feature": "transaction.version", "max_version_level": 1, "allow_downgrade": True}
    world.ask("UpdateFeatures", 0, "lower, which only v0 can allow", feature_updates=[allowed])


SCENARIOS = (
    epochs,
    first_protocol,
    second_protocol,
    ending_wrongly,
    adding,
    producing_wrongly,
    offsets,
    markers_by_hand,
    listings,
    features,
)
