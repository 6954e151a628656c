"""Control records: the ends of transactions, and those of Apache Kafka's quorum."""

from __future__ import annotations

from struct import Struct as Layout
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.dump_log.decoding import Undecodable
from moldau.wire.batch import Record

if TYPE_CHECKING:
    from moldau.wire.schema import Message

_KEY = Layout(">hh")  # version, type
_MARKER = Layout(">hi")  # version, coordinator epoch
_VERSION = Layout(">h")

MARKERS = ("ABORT", "COMMIT")
LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(2, 7)


def control_words(record: Record) -> str:
    key, value = record.key, record.value
    if key is None or len(key) < _KEY.size:
        raise Undecodable(f"the key of the control record at offset {record.offset} has no type")
    _, kind = _KEY.unpack_from(key)
    if kind < 0 or kind > KRAFT_VOTERS:
        return f"controlType: UNKNOWN({kind})"
    needed = _MARKER.size if kind < len(MARKERS) else _VERSION.size
    if value is None or len(value) < needed:
        raise Undecodable(f"the value of the control record at offset {record.offset} is too short")
    if kind < len(MARKERS):
        return f"endTxnMarker: {MARKERS[kind]} coordinatorEpoch: {_MARKER.unpack_from(value)[1]}"
    return _of_quorum(kind, memoryview(value))


def _of_quorum(kind: int, value: memoryview) -> str:
    from moldau.cli.kafka.dump_log.json_text import as_json, json_text
    from moldau.cli.kafka.dump_log.schemas import control
    from moldau.wire.codec import decode

    known: dict[int, tuple[str, type[Message]]] = {
        LEADER_CHANGE: ("LeaderChange:", control.LeaderChangeMessage),
        SNAPSHOT_HEADER: ("SnapshotHeader", control.SnapshotHeaderRecord),
        SNAPSHOT_FOOTER: ("SnapshotFooter", control.SnapshotFooterRecord),
        KRAFT_VERSION: ("KRaftVersion", control.KRaftVersionRecord),
        KRAFT_VOTERS: ("KRaftVoters", control.VotersRecord),
    }
    name, schema = known[kind]
    version = min(max(_VERSION.unpack_from(value)[0], schema.VERSIONS[0]), schema.VERSIONS[1])
    message: Any = decode(schema, version, value)[0]
    return f"{name} {json_text(as_json(message, version))}"
