from __future__ import annotations

import pytest

from moldau.coordinator.journal import StoredRecord
from moldau.core.errors import ProtocolViolation
from moldau.groups.classic.members import Protocol
from moldau.groups.consumer.facts import (
    ConsumerFact,
    GroupEpochSet,
    OldMetadataSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    ResolvedRegex,
    TargetEpochSet,
    TargetSet,
    TopicsChecked,
)
from moldau.groups.consumer.members import ClassicPart, MemberState, Profile, Progress
from moldau.groups.consumer.records import encode_consumer_fact
from moldau.groups.records import Fact, decode_fact
from tests.groups.consumer.worlds import ConsumerWorld

T = bytes(range(16))
PROFILE = Profile("c", "/h", "i", "r", frozenset({"a", "b"}), "x.*", 20_000, "range")
CLASSIC = Profile("c", "/h", regex=None, classic=ClassicPart(45_000, (Protocol("range", b"\0\1"),)))
PROGRESS = Progress(7, 6, MemberState.UNREVOKED, {T: {0: 5, 3: 7}}, {T: {1: 6}})

FACTS: list[ConsumerFact] = [
    GroupEpochSet("g", 3, -5),
    GroupEpochSet("g", None),
    ProfileSet("g", "m", PROFILE),
    ProfileSet("g", "m", CLASSIC),
    ProfileSet("g", "m", Profile()),
    ProfileSet("g", "m", None),
    TargetEpochSet("g", 3, 1_234_567_890_123),
    TargetEpochSet("g", None),
    TargetSet("g", "m", {T: frozenset({0, 2})}),
    TargetSet("g", "m", {}),
    TargetSet("g", "m", None),
    ProgressSet("g", "m", PROGRESS),
    ProgressSet("g", "m", None),
    RegexSet("g", "x.*", ResolvedRegex(frozenset({"xa", "xb"}), 9, 10)),
    RegexSet("g", "x.*", None),
    OldMetadataSet("g", is_there=False),
]


def round_trip(fact: ConsumerFact) -> Fact | None:
    entry = encode_consumer_fact(fact)
    assert entry is not None
    key, value = entry
    return decode_fact(memoryview(key), None if value is None else memoryview(value))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_what_is_written_is_read(fact: ConsumerFact) -> None:
    assert round_trip(fact) == fact


# Of the same lengths as Apache Kafka's own, and its decoder prints the same of them.
@pytest.mark.parametrize(
    ("fact", "key", "value"),
    [
        (GroupEpochSet("g", 3, -5), "0003000167", "00000000000301 0008 fffffffffffffffb"),
        (GroupEpochSet("g", 3), "0003000167", "00000000000300"),
        (TargetEpochSet("g", 3, 256), "0006000167", "00000000000301 0008 0000000000000100"),
        (TargetSet("g", "m", {T: frozenset({2})}), "000700016700016d", f"0000 02 {T.hex()} 02 00000002 00 00"),
        (
            ProgressSet("g", "m", Progress(7, 6, MemberState.UNRELEASED, {T: {1: 5}})),
            "000800016700016d",
            f"0000 00000007 00000006 02 02 {T.hex()} 02 00000001 01 00 05 02 00000005 01 00",
        ),
        (
            RegexSet("g", "x", ResolvedRegex(frozenset({"xa"}), 1, 2)),
            "0010000167000178",
            "0000 02 037861 0000000000000001 0000000000000002 00",
        ),
        (
            ProfileSet("g", "m", Profile("c", "/h", topics=frozenset({"t"}), rebalance_timeout_ms=1)),
            "000500016700016d",
            "0000 00 00 0263 032f68 02 0274 01 00000001 00 01 00 01 00",
        ),
        (OldMetadataSet("g", is_there=False), "0004000167", None),
    ],
    ids=str,
)
def test_the_bytes_are_those_of_apache_kafka(fact: ConsumerFact, key: str, value: str | None) -> None:
    assert encode_consumer_fact(fact) == (bytes.fromhex(key), None if value is None else bytes.fromhex(value))


def test_a_version_that_was_looked_at_is_not_logged() -> None:
    assert encode_consumer_fact(TopicsChecked("g", 3)) is None


def test_partitions_without_epochs_are_as_old_as_the_member() -> None:
    key = bytes.fromhex("000800016700016d")
    value = bytes.fromhex(f"0000 00000007 00000006 00 02 {T.hex()} 02 00000001 00 01 00")
    progress = Progress(7, 6, MemberState.STABLE, {T: {1: 7}})
    assert decode_fact(memoryview(key), memoryview(value)) == ProgressSet("g", "m", progress)


def test_a_state_of_a_later_release_is_unknown() -> None:
    key, value = bytes.fromhex("000800016700016d"), bytes.fromhex("0000 00000007 00000006 09 01 01 00")
    fact = decode_fact(memoryview(key), memoryview(value))
    assert isinstance(fact, ProgressSet)
    assert fact.progress == Progress(7, 6, MemberState.UNKNOWN)


def test_the_list_of_topics_that_older_releases_wrote_is_noticed() -> None:
    fact = decode_fact(memoryview(bytes.fromhex("0004000167")), memoryview(b"\0\0\1\0"))
    assert fact == OldMetadataSet("g", is_there=True)


@pytest.mark.parametrize("value", ["", "00", "0009", "0000", "000000000003ff"])
def test_damage_is_told(value: str) -> None:
    with pytest.raises(ProtocolViolation):
        decode_fact(memoryview(bytes.fromhex("0003000167")), memoryview(bytes.fromhex(value)))


def test_a_shard_that_reads_its_log_is_as_it_was() -> None:
    world = ConsumerWorld({"orders": 4, "other": 2})
    world.join("a", instance_id="i", rack_id="r")
    world.join("b", "orders", "other", regex="oth.*")
    world.pass_time(0)
    world.settle("a", "b")
    world.join("c")
    world.beat("a")
    again = world.new_shard()
    for key, value in world.logged:
        fact = again.decode(StoredRecord(memoryview(key), None if value is None else memoryview(value)))
        assert fact is not None
        again.apply(fact)
    again.consumer_groups["readers"].topics_version = world.group.topics_version  # lives in memory only
    assert again.consumer_groups == world.shard.consumer_groups
