"""Our records against the bytes that Apache Kafka 4.3.1 wrote, and against its own definitions of them."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any

import pytest

from moldau.core.errors import ProtocolViolation
from moldau.groups.classic.group import Group, State
from moldau.groups.classic.members import Member, Protocol
from moldau.groups.records import (
    ClassicFact,
    CommittedOffset,
    Fact,
    GroupChanged,
    GroupCreated,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    decode_fact,
    encode_fact,
)
from moldau.groups.schemas import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from moldau.wire.schema import NEVER, Kind, fields_of
from tests import apache_kafka

TOPIC_ID = bytes.fromhex("3ae4ad9554d14687a51627777e8daa39")
MEMBER_ID = "rdkafka-d8560f41-11cb-4c68-af09-b6dfbfe9f838"
SUBSCRIPTION = bytes.fromhex("0003000000010001740000000000000000ffffffff0000")
ASSIGNMENT = bytes.fromhex("0000000000010001740000000200000000000000010000" + "0000")

MEMBER = Member(
    member_id=MEMBER_ID,
    client_id="rdkafka",
    client_host="/127.0.0.1",
    session_timeout_ms=45_000,
    rebalance_timeout_ms=300_000,
    protocols=(Protocol("range", SUBSCRIPTION),),
    assignment=ASSIGNMENT,
)
STABLE = Group(
    "g1",
    state=State.STABLE,
    generation=1,
    protocol_type="consumer",
    protocol_name="range",
    leader=MEMBER_ID,
    state_since_ms=0x1A1DEE64BEC,
    members={MEMBER_ID: MEMBER},
    subscribed_topics=frozenset({"t"}),
)
EMPTY = Group(
    "g1",
    generation=2,
    protocol_type="consumer",
    state_since_ms=0x1A1DEE64CD4,
    subscribed_topics=frozenset(),
)

# What Apache Kafka wrote for a librdkafka consumer of one topic, and for a commit without a group.
WRITTEN_BY_KAFKA: list[tuple[Fact, str, str | None]] = [
    (
        GroupCreated("g1", 0x1A1DEE64B15),
        "000200026731",
        "0003" + "0000" + "00000000" + "ffff" + "ffff" + "000001a1dee64b15" + "00000000",
    ),
    (
        GroupChanged(STABLE, True),
        "000200026731",
        "0003"
        + "0008636f6e73756d6572"
        + "00000001"
        + "000572616e6765"
        + f"002c{MEMBER_ID.encode().hex()}"
        + "000001a1dee64bec"
        + "00000001"
        + f"002c{MEMBER_ID.encode().hex()}"
        + "ffff"
        + "000772646b61666b61"
        + "000a2f3132372e302e302e31"
        + "000493e0"
        + "0000afc8"
        + f"00000017{SUBSCRIPTION.hex()}"
        + f"00000019{ASSIGNMENT.hex()}",
    ),
    (
        GroupChanged(EMPTY, True),
        "000200026731",
        "0003" + "0008636f6e73756d6572" + "00000002" + "ffff" + "ffff" + "000001a1dee64cd4" + "00000000",
    ),
    (
        OffsetCommitted("simple", "t", 0, CommittedOffset(5, -1, "meta", 0x1A1DEE64D45, topic_id=TOPIC_ID)),
        "0001000673696d706c6500017400000000",
        "0004" + "0000000000000005" + "ffffffff" + "056d657461" + "000001a1dee64d45" + f"010010{TOPIC_ID.hex()}",
    ),
    (OffsetDeleted("simple", "t", 0), "0001000673696d706c6500017400000000", None),
    (GroupDeleted("g1"), "000200026731", None),
]


@pytest.mark.parametrize(("fact", "key", "value"), WRITTEN_BY_KAFKA)
def test_the_same_bytes_as_apache_kafka(fact: ClassicFact, key: str, value: str | None) -> None:
    assert encode_fact(fact) == (bytes.fromhex(key), None if value is None else bytes.fromhex(value))


@pytest.mark.parametrize(("fact", "key", "value"), WRITTEN_BY_KAFKA[1:])
def test_what_is_read_is_what_was_written(fact: Fact, key: str, value: str | None) -> None:
    written = None if value is None else memoryview(bytes.fromhex(value))
    assert decode_fact(memoryview(bytes.fromhex(key)), written) == fact


def test_a_group_that_was_just_created_is_read_as_an_empty_one() -> None:
    key, value = encode_fact(GroupCreated("g1", 7)) or (b"", b"")
    assert decode_fact(memoryview(key), memoryview(value or b"")) == GroupChanged(Group("g1", state_since_ms=7), True)


def test_a_rebalance_under_way_is_not_written() -> None:
    assert encode_fact(GroupChanged(STABLE, False)) is None


def test_an_offset_with_a_time_to_live_is_written_as_old_brokers_did() -> None:
    fact = OffsetCommitted("g", "t", 1, CommittedOffset(5, metadata="m", commit_ms=10, expire_ms=20))
    key, value = encode_fact(fact) or (b"", b"")
    assert value is not None
    assert value[:2] == b"\x00\x01"
    assert decode_fact(memoryview(key), memoryview(value)) == fact


@pytest.mark.parametrize(
    ("version", "rest"),
    [(0, "0000000000000005" + "0000" + "000000000000000a"), (2, "0000000000000005" + "0000" + "000000000000000a")],
)
def test_offsets_of_old_brokers_are_read(version: int, rest: str) -> None:
    key = memoryview(bytes.fromhex("0000" + "000167" + "000174" + "00000001"))
    value = memoryview(version.to_bytes(2, "big") + bytes.fromhex(rest))
    assert decode_fact(key, value) == OffsetCommitted("g", "t", 1, CommittedOffset(5, commit_ms=10))


def test_kinds_that_we_do_not_know_are_passed_over() -> None:
    assert decode_fact(memoryview(b"\x00\x63whatever"), memoryview(b"")) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("", None), ("00", None), ("0001", None), ("000200", None), ("000200026731", "0009"), ("000200026731", "0003ff")],
)
def test_damage_is_noticed(key: str, value: str | None) -> None:
    with pytest.raises(ProtocolViolation):
        decode_fact(memoryview(bytes.fromhex(key)), None if value is None else memoryview(bytes.fromhex(value)))


KINDS = {"int32": Kind.INT32, "int64": Kind.INT64, "string": Kind.STRING, "bytes": Kind.BYTES, "uuid": Kind.UUID}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


def versions(text: str, newest: int) -> tuple[int, int]:
    oldest, _, end = text.partition("-")
    if oldest.endswith("+"):
        return int(oldest[:-1]), newest
    return int(oldest), int(end or oldest)


def shape(definition: dict[str, Any], newest: int) -> list[tuple[Any, ...]]:
    return [
        (
            snake(field["name"]),
            KINDS.get(field["type"], field["type"]),
            versions(field["versions"], newest),
            versions(field["nullableVersions"], newest) if "nullableVersions" in field else None,
            field.get("tag"),
        )
        for field in definition["fields"]
    ]


@pytest.mark.parametrize("cls", [OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue])
def test_the_same_fields_as_apache_kafka_defines(cls: Any) -> None:
    definition = apache_definition(cls.__name__)
    newest = cls.VERSIONS[1]
    flexible = definition["flexibleVersions"]
    assert definition["apiKey"] == cls.API_KEY
    assert versions(definition["validVersions"], newest) == cls.VERSIONS
    assert (NEVER if flexible == "none" else versions(flexible, newest)[0]) == cls.FLEXIBLE_FROM
    assert own_shape(cls, newest) == shape(definition, newest)
    for struct in definition.get("commonStructs", ()):
        (own,) = [field.type for field in fields_of(cls) if getattr(field.type, "__name__", "") == struct["name"]]
        assert own_shape(own, newest) == shape(struct, newest)


def own_shape(cls: Any, newest: int) -> list[tuple[Any, ...]]:
    def bounds(found: Any) -> tuple[int, int]:
        return found.oldest, min(found.newest, newest)

    return [
        (
            field.name,
            f"[]{field.type.__name__}" if field.is_array and isinstance(field.type, type) else field.type,
            bounds(field.versions),
            None if field.nullable is None else bounds(field.nullable),
            field.tag,
        )
        for field in fields_of(cls)
    ]


def apache_definition(name: str) -> Any:
    if not apache_kafka.available():
        pytest.skip("Apache Kafka needs java, and Maven the first time")
    jar = apache_kafka.libs() / f"kafka-group-coordinator-{apache_kafka.VERSION}.jar"
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(f"common/message/{name}.json").decode()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
