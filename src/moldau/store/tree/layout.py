"""What is where in the tree, and how it is written. Operators know the first four from Apache Kafka.

/brokers/ids/N                a living broker (ephemeral)
/controller                   the elected broker (ephemeral)
/controller_epoch             how many were elected; its version fences what an older one still sends
/cluster/id                   the cluster's id
/moldau/log                   the metadata log's head: its end, and which snapshot stands for its beginning
/moldau/log/entries/P         an entry, or where the parts of a large one are
/moldau/log/parts/P.TAG.K     part K of a large entry
/moldau/log/snapshots/P.TAG.K part K of a snapshot
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moldau.store.process import ProcessId
from moldau.store.store import START, ControllerAndEpoch, CorruptStore, Registration, StoreError

BROKER_IDS = "/brokers/ids"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
OURS = "/moldau"
HEAD = "/moldau/log"
ENTRIES = "/moldau/log/entries"
PARTS = "/moldau/log/parts"
SNAPSHOTS = "/moldau/log/snapshots"

PART_BYTES_MAX = (
    512 * 1024
)  # half of jute.maxbuffer's 1 MB: a request has a path, checks and the head, too; etcd takes 1.5 MB, in base64
REGISTRATION_BYTES_MAX = 1_000_000  # of jute.maxbuffer's 1,048,575, beyond which ZooKeeper just hangs up
HEAD_VERSION = 1
ENTRY_VERSION = 1
BROKER_VERSION = 5  # of Apache Kafka's JSON
CONTROLLER_VERSION = 1

TAG_BYTES = 8
_ENTRY = struct.Struct(f">bq{TAG_BYTES}sII")  # version, controller epoch, tag, checksum, parts


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def entry_path(position: int) -> str:
    return f"{ENTRIES}/{position:019d}"


def part_paths(folder: str, position: int, tag: bytes, count: int) -> list[str]:
    return [f"{folder}/{position:019d}.{tag.hex()}.{number:05d}" for number in range(count)]


def position_of(part: str) -> int:
    """Of a part, by its name."""
    return int(part.partition(".")[0])


def cut(payload: bytes) -> list[bytes]:
    return [payload[at : at + PART_BYTES_MAX] for at in range(0, len(payload), PART_BYTES_MAX)]


@dataclass(frozen=True, slots=True)
class Entry:
    """The node of an entry. The tag tells one attempt to write an entry from any other."""

    epoch: int
    tag: bytes
    checksum: int
    parts: int
    inline: bytes

    @classmethod
    def of(cls, payload: bytes, *, epoch: int, tag: bytes) -> Entry:
        parts = cut(payload) if len(payload) > PART_BYTES_MAX else []
        return cls(epoch, tag, zlib.crc32(payload), len(parts), b"" if parts else payload)

    def encode(self) -> bytes:
        return _ENTRY.pack(ENTRY_VERSION, self.epoch, self.tag, self.checksum, self.parts) + self.inline

    @classmethod
    def decode(cls, path: str, data: bytes) -> Entry:
        if len(data) < _ENTRY.size or data[0] != ENTRY_VERSION:
            raise CorruptStore(
                f"the metadata store's {path} is not an entry of a Moldau metadata log, or of a later release"
            )
        _, epoch, tag, checksum, parts = _ENTRY.unpack_from(data)
        return cls(epoch, tag, checksum, parts, data[_ENTRY.size :])


@dataclass(frozen=True, slots=True)
class SnapshotReference:
    position: int
    tag: bytes
    parts: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Head:
    """`first` is the lowest position whose entry may be there; those up to the snapshot's only wait to be removed."""

    end: int = START
    first: int = START + 1
    snapshot: SnapshotReference | None = None

    def encode(self) -> bytes:
        snapshot = self.snapshot
        parts = snapshot and {
            "position": snapshot.position,
            "tag": snapshot.tag.hex(),
            "parts": snapshot.parts,
            "checksum": snapshot.checksum,
        }
        return _json({"version": HEAD_VERSION, "end": self.end, "first": self.first, "snapshot": parts})

    @classmethod
    def decode(cls, data: bytes) -> Head:
        fields = _fields(HEAD, data)
        version = fields.get("version")
        if version != HEAD_VERSION:
            raise StoreError(
                f"the metadata store's {HEAD} has version {version}; this release reads version {HEAD_VERSION}"
            )
        try:
            kept = fields["snapshot"]
            snapshot = kept and SnapshotReference(
                kept["position"], bytes.fromhex(kept["tag"]), kept["parts"], kept["checksum"]
            )
            return cls(fields["end"], fields["first"], snapshot)
        except (KeyError, TypeError, ValueError) as wrong:
            raise _damaged(HEAD) from wrong


def joined(what: str, parts: Sequence[bytes], checksum: int) -> bytes:
    payload = b"".join(parts)
    if zlib.crc32(payload) != checksum:
        raise CorruptStore(f"the metadata store's {what} is damaged (its checksum is wrong)")
    return payload


def encode_broker(registration: Registration, process: ProcessId, *, host: str, timestamp_ms: int) -> bytes:
    """Apache Kafka's fields, for operators and their tools; and below `moldau` what its brokers read."""
    endpoints = registration.description.endpoints
    # Apache Kafka's tools of old read host and port; they stand for the first listener without encryption.
    plain = next((each for each in endpoints if each.security_protocol == "PLAINTEXT"), None)
    fields: dict[str, Any] = {
        "version": BROKER_VERSION,
        "host": plain.host if plain else None,
        "port": plain.port if plain else -1,
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
        "endpoints": [f"{each.listener}://{_bracketed(each.host)}:{each.port}" for each in endpoints],
        "listener_security_protocol_map": {each.listener: each.security_protocol for each in endpoints},
        "features": {},
    }
    if registration.description.rack is not None:
        fields["rack"] = registration.description.rack
    payload = base64.b64encode(registration.payload).decode()
    encoded = _json({**fields, "moldau": {"payload": payload, "process": {"host": host, **process._asdict()}}})
    if len(encoded) > REGISTRATION_BYTES_MAX:
        what = f"the registration of broker {registration.broker_id} has {len(encoded):,} bytes"
        raise StoreError(f"{what}; the metadata store takes {REGISTRATION_BYTES_MAX:,}")
    return encoded


def decode_broker(path: str, data: bytes) -> tuple[bytes, ProcessId, str]:
    """The payload, the process that registered, and the host that it said it is on."""
    try:
        ours = _fields(path, data)["moldau"]
        process = dict(ours["process"])
        host = process.pop("host")
        return base64.b64decode(ours["payload"]), ProcessId(**process), host
    except (KeyError, TypeError, ValueError) as wrong:
        raise CorruptStore(f"the metadata store's {path} is no registration of a Moldau broker") from wrong


def encode_controller(leadership: ControllerAndEpoch, *, timestamp_ms: int) -> bytes:
    """Apache Kafka's fields, and the epoch, which so belongs to this node and not to a later one."""
    return _json(
        {
            "version": CONTROLLER_VERSION,
            "brokerid": leadership.broker_id,
            "timestamp": str(timestamp_ms),
            "moldau": {"epoch": leadership.epoch},
        }
    )


def decode_controller(data: bytes) -> ControllerAndEpoch:
    try:
        fields = _fields(CONTROLLER, data)
        return ControllerAndEpoch(fields["brokerid"], fields["moldau"]["epoch"])
    except (KeyError, TypeError) as wrong:
        raise CorruptStore(f"the metadata store's {CONTROLLER} was not written by a Moldau broker") from wrong


def encode_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as wrong:
        raise _damaged(CONTROLLER_EPOCH) from wrong


def encode_cluster_id(cluster_id: str) -> bytes:
    return _json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return str(_fields(CLUSTER_ID, data).get("id", ""))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _fields(path: str, data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except ValueError as wrong:
        raise _damaged(path) from wrong
    if not isinstance(fields, dict):
        raise _damaged(path)
    return fields


def _damaged(path: str) -> CorruptStore:
    return CorruptStore(f"the metadata store's {path} is damaged, or was not written by a Moldau broker")
