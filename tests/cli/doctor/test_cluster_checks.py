"""What each check of a cluster says of facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from moldau.cli.doctor.cluster.checks import CHECKS
from moldau.cli.doctor.cluster.facts import Broker, ClusterFacts, Group, LogDirectory, Partition, Topic, Unread
from moldau.cli.doctor.cluster.groups import left_until_deleted_ms
from moldau.cli.doctor.findings import Finding, Severity, run_checks
from moldau.core.ids import TopicPartition

OK, NOTE, WARNING, PROBLEM = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.PROBLEM
NOW_MS = 1_700_000_000_000
HOUR_MS, DAY_MS, WEEK_MS = 3_600_000, 86_400_000, 7 * 86_400_000
GB = 10**9
CONFIGS = {
    "min.insync.replicas": "2",
    "retention.ms": str(WEEK_MS),
    "retention.bytes": "-1",
    "segment.ms": str(WEEK_MS),
    "segment.bytes": str(1 << 30),
    "cleanup.policy": "delete",
    "unclean.leader.election.enable": "false",
    "message.timestamp.type": "CreateTime",
}
APIS = frozenset({(0, 3, 13)})
FEATURES = {"group.version": (0, 1)}


def broker(broker_id: int, host: str = "127.0.0.1", **other: object) -> Broker:
    known = Broker(
        broker_id,
        host,
        9092,
        round_trip_ms=0.3,
        controller_id=1,
        supported=FEATURES,
        finalized={"group.version": 1},
        apis=APIS,
    )
    return replace(known, **other)  # type: ignore[arg-type]


def partition(
    number: int = 0, topic: str = "orders", replicas: tuple[int, ...] = (1, 2, 3), **other: object
) -> Partition:
    known = Partition(
        TopicPartition(topic, number), replicas[0], replicas, replicas, start=0, end=100, size_bytes=1_000
    )
    return replace(known, **other)  # type: ignore[arg-type]


def topic(*partitions: Partition, configs: Mapping[str, str] | None = None, is_internal: bool = False) -> Topic:
    found = partitions or tuple(partition(each, replicas=spread(each)) for each in range(3))
    return Topic(found[0].place.topic, is_internal, found, {**CONFIGS, **(configs or {})})


def spread(number: int) -> tuple[int, int, int]:
    first = number % 3
    return (1 + first, 1 + (first + 1) % 3, 1 + (first + 2) % 3)


def cluster(*topics: Topic, brokers: tuple[Broker, ...] | None = None, **other: object) -> ClusterFacts:
    members = brokers or tuple(broker(each) for each in (1, 2, 3))
    named = {each.name: each for each in (topics or (topic(),))}
    known = ClusterFacts(NOW_MS, "127.0.0.1:9092", {each.id: each for each in members}, named, quorum_leader=1)
    return replace(known, **other)  # type: ignore[arg-type]


def judged(facts: ClusterFacts) -> dict[str, Finding]:
    """By the name of the check; the worst where there are several."""
    found: dict[str, Finding] = {}
    for each in run_checks(CHECKS, facts):
        if each.check not in found or found[each.check].severity.rank < each.severity.rank:
            found[each.check] = each
    return found


def test_nothing_is_wrong_with_a_cluster_that_is_well() -> None:
    found = judged(cluster(groups=(Group("billing", "Stable", 2, 0),)))
    assert {each.severity for each in found.values()} == {OK}
    assert len(found) > 15


def one(**other: object) -> ClusterFacts:
    """One partition that is otherwise; the two beside it are well."""
    well = (partition(1, replicas=spread(1)), partition(2, replicas=spread(2)))
    return cluster(topic(partition(**other), *well))  # type: ignore[arg-type]


def configured(**configs: str) -> ClusterFacts:
    return cluster(topic(configs={name.replace("_", "."): value for name, value in configs.items()}))


def led_by(*leaders: int) -> ClusterFacts:
    places = [partition(each, replicas=spread(each), leader=leader) for each, leader in enumerate(leaders)]
    return cluster(topic(*places))


def replicas_on(*replicas: tuple[int, ...]) -> ClusterFacts:
    return cluster(topic(*(partition(each, replicas=some) for each, some in enumerate(replicas))))


def steady(bytes_per_s: float, **configs: str) -> ClusterFacts:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return cluster(
        topic(*(partition(each, replicas=spread(each), bytes_per_s=bytes_per_s) for each in range(3)), configs=named)
    )


def directory(**other: object) -> ClusterFacts:
    known = LogDirectory(1, "/data", None, 1_000 * GB, 500 * GB, {TopicPartition("orders", 0): 1_000})
    return replace(steady(1e5), directories=(replace(known, **other),))  # type: ignore[arg-type]


INTERNAL = topic(partition(topic="__consumer_offsets", replicas=(1,)), is_internal=True)
CASES = [
    # Brokers.
    (cluster(brokers=(broker(1), broker(2), broker(3, failure="refused"))), "broker-reachable", PROBLEM),
    (cluster(brokers=(broker(1), broker(2), broker(3, round_trip_ms=80.0))), "broker-reachable", NOTE),
    (cluster(brokers=(broker(1), broker(2))), "broker-missing", PROBLEM),
    (cluster(servers="kafka-1:9092"), "advertised-listener", WARNING),
    (cluster(quorum_leader=-1), "controller", PROBLEM),
    (cluster(brokers=(broker(1), broker(2, controller_id=3), broker(3))), "controller", PROBLEM),
    (
        cluster(
            brokers=tuple(broker(each, controller_id=each, supported={"kraft.version": (0, 1)}) for each in (1, 2, 3))
        ),
        "controller",
        OK,
    ),
    (
        cluster(quorum_leader=None, brokers=tuple(broker(each, controller_id=-1) for each in (1, 2, 3))),
        "controller",
        PROBLEM,
    ),
    (cluster(brokers=(broker(1), broker(2, apis=frozenset()), broker(3))), "releases", WARNING),
    (cluster(brokers=tuple(broker(each, finalized={}) for each in (1, 2, 3))), "features", NOTE),
    (cluster(brokers=tuple(broker(each, rack=f"r{each}") for each in (1, 2, 3))), "racks", OK),
    (cluster(brokers=(broker(1, rack="a"), broker(2), broker(3))), "racks", WARNING),
    # Partitions.
    (one(leader=-1, in_sync=()), "offline-partitions", PROBLEM),
    (one(in_sync=(1, 2)), "under-replicated", PROBLEM),
    (replace(one(in_sync=(1, 2)), moving=frozenset({TopicPartition("orders", 0)})), "under-replicated", NOTE),
    (one(in_sync=(1,)), "under-min-isr", PROBLEM),
    (one(in_sync=(1, 2)), "under-min-isr", OK),
    (led_by(1, 2, 3), "preferred-leaders", OK),
    (led_by(1, 1, 3), "preferred-leaders", WARNING),
    (led_by(*[1 + each % 3 for each in range(29)], 1), "preferred-leaders", NOTE),
    (led_by(1, 1, 1, 1, 1, 1), "leader-skew", WARNING),
    (led_by(1, 2, 3, 1), "leader-skew", OK),
    (replicas_on(*[(1, 2)] * 6), "replica-skew", WARNING),
    (cluster(topic(*(partition(each, replicas=(1,)) for each in range(4_001)))), "replicas-per-broker", WARNING),
    # Topics.
    (cluster(brokers=(broker(1),)), "replication-factor", NOTE),
    (replicas_on((1,), (2,), (3,)), "replication-factor", WARNING),
    (cluster(INTERNAL), "internal-replication", WARNING),
    (cluster(INTERNAL), "replication-factor", OK),
    (configured(min_insync_replicas="3"), "min-insync-replicas", WARNING),
    (configured(min_insync_replicas="1"), "min-insync-replicas", WARNING),
    (configured(unclean_leader_election_enable="true"), "unclean-election", WARNING),
    (led_by(1, 2, 3, 1), "partition-count", NOTE),
    (led_by(1, 2, 3, 1, 2, 3), "partition-count", OK),
    (cluster(topic(partition())), "partition-count", OK),
    (cluster(brokers=(broker(1), broker(2))), "partition-count", OK),
    (steady(6 * GB / 86_400 - 1), "partition-traffic", OK),
    (steady(6 * GB / 86_400 + 1), "partition-traffic", WARNING),
    (steady(1.0, retention_ms=str(HOUR_MS)), "segment-roll", WARNING),
    (steady(1e6, retention_ms=str(HOUR_MS)), "segment-roll", OK),
    (steady(1.0, retention_ms=str(HOUR_MS), segment_ms=str(HOUR_MS)), "segment-roll", OK),
    (steady(1.0, retention_ms=str(HOUR_MS), cleanup_policy="compact"), "segment-roll", OK),
    (configured(retention_ms=str(HOUR_MS)), "segment-roll", OK),
    (steady(1e5, segment_bytes=str(1 << 20)), "segment-count", WARNING),
    (steady(1e5, segment_bytes=str(1 << 20), retention_bytes=str(100 << 20)), "segment-roll", OK),
    (configured(retention_ms="-1"), "endless-retention", NOTE),
    (one(newest_ms=NOW_MS + 2 * HOUR_MS), "future-records", WARNING),
    # Log directories.
    (directory(), "log-directory-room", OK),
    (directory(error="Disk error"), "log-directory-offline", PROBLEM),
    (directory(usable_bytes=100 * GB), "log-directory-room", WARNING),
    (directory(usable_bytes=10 * GB, total_bytes=11 * GB), "log-directory-room", WARNING),
    (directory(usable_bytes=200 * GB, total_bytes=100_000 * GB), "log-directory-room", PROBLEM),
    (directory(total_bytes=None), "replica-skew", OK),
    # Groups.
    (cluster(groups=(Group("billing", "Empty", 0, 5),)), "empty-groups", WARNING),
    (cluster(groups=(Group("billing", "Empty", 0, 0),)), "groups", OK),
    (cluster(groups=(Group("billing", "PreparingRebalance", 2, 5, 5_000),)), "rebalancing-groups", WARNING),
    (cluster(unasked={"log directories": "Cluster authorization failed."}), "unasked", NOTE),
]


@pytest.mark.parametrize(("facts", "check", "severity"), CASES)
def test_facts_of_a_cluster(facts: ClusterFacts, check: str, severity: Severity) -> None:
    found = judged(facts)[check]
    assert found.severity is severity, found
    assert bool(found.why and found.do) == (severity is not OK), "what is not fine has a reason and a way out"


ABSENT = [
    (configured(cleanup_policy="compact", retention_ms="-1"), "endless-retention"),
    (configured(retention_ms="-1", retention_bytes="1000"), "endless-retention"),
    (one(newest_ms=NOW_MS + 1_000), "future-records"),
    (cluster(brokers=(broker(1),)), "leader-skew"),
    (steady(1e5, segment_bytes=str(1 << 20), retention_bytes=str(100 << 20)), "segment-count"),
]


@pytest.mark.parametrize(("facts", "check"), ABSENT)
def test_what_there_is_nothing_to_say_of(facts: ClusterFacts, check: str) -> None:
    assert check not in judged(facts)


READER = Unread("billing", TopicPartition("orders", 0), 40)
LAG_CASES = [
    # retention.ms, written so long ago, offset, severity, what is said
    (WEEK_MS, DAY_MS, 40, OK, ""),
    (WEEK_MS, WEEK_MS - 3 * HOUR_MS, 40, WARNING, "in 3 h"),
    (WEEK_MS, WEEK_MS + HOUR_MS, 40, PROBLEM, "at any moment"),
    (HOUR_MS, HOUR_MS // 2, 40, OK, ""),
    (HOUR_MS, HOUR_MS - 600_000, 40, WARNING, "in 10 min"),
    (-1, 50 * WEEK_MS, 40, OK, ""),
    (WEEK_MS, HOUR_MS, 5, PROBLEM, "5 records of orders-0 are deleted"),
]


@pytest.mark.parametrize(("retention_ms", "age_ms", "offset", "severity", "told"), LAG_CASES)
def test_retention_against_lag(retention_ms: int, age_ms: int, offset: int, severity: Severity, told: str) -> None:
    unread = replace(READER, offset=offset, written_ms=NOW_MS - age_ms)
    facts = replace(
        cluster(topic(partition(start=10), configs={"retention.ms": str(retention_ms)})),
        groups=(Group("billing", "Stable", 1, 60),),
        unread=(unread,),
    )
    found = judged(facts)["retention-lag"]
    assert found.severity is severity
    assert told in found.seen


def test_retention_by_size_counts_as_well() -> None:
    kept = topic(configs={"retention.bytes": "1000", "retention.ms": "-1"})
    place = partition(start=0, end=100, size_bytes=1_000, bytes_per_s=2.0)
    # 60 % of 1,000 bytes are behind it, so that 400 more may come, at 2 a second.
    assert left_until_deleted_ms(kept, place, READER, NOW_MS) == 200_000


def test_skewed_leaders_are_elected_and_skewed_replicas_moved() -> None:
    by_election = judged(led_by(1, 1, 1, 1, 1, 1))["leader-skew"]
    assert by_election.do == ("moldau leader-election --election-type preferred --all-topic-partitions",)
    by_moving = judged(replicas_on(*[(1, 2)] * 6))["replica-skew"]
    document = by_moving.do[0].partition("'")[2].rpartition("'")[0]
    assert json.loads(document) == {"version": 1, "topics": [{"topic": "orders"}]}
    assert "--broker-list 1,2,3" in by_moving.do[1]


def test_more_replicas_keep_the_leader_and_come_from_the_others() -> None:
    found = judged(replicas_on((3,), (1,)))["replication-factor"]
    document = json.loads(found.do[0].partition("'")[2].rpartition("'")[0])
    assert [each["replicas"][0] for each in document["partitions"]] == [3, 1]
    assert [sorted(each["replicas"]) for each in document["partitions"]] == [[1, 2, 3], [1, 2, 3]]


def test_what_retention_lets_in_is_told_with_the_time_that_is_left() -> None:
    found = judged(directory(usable_bytes=20 * GB, total_bytes=100 * GB))["log-directory-room"]
    assert "retention lets in 60.5 GB more" in found.seen
    assert "2 d 7 h" in found.why


def test_whose_clock_is_wrong() -> None:
    ahead = partition(newest_ms=NOW_MS + DAY_MS)
    assert "producer" in judged(cluster(topic(ahead)))["future-records"].why
    by_broker = topic(ahead, configs={"message.timestamp.type": "LogAppendTime"})
    assert "broker's clock" in judged(cluster(by_broker))["future-records"].why


def test_partitions_in_one_rack_are_named() -> None:
    brokers = tuple(broker(each, rack=rack) for each, rack in ((1, "a"), (2, "a"), (3, "b")))
    found = judged(replace(replicas_on((1, 2), (1, 3)), brokers={each.id: each for each in brokers}))["racks"]
    assert found.severity is WARNING
    assert "orders-0" in found.seen
    assert "orders-1" not in found.seen
