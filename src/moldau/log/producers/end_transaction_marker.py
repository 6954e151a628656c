"""The control record at the end of a transaction."""

from __future__ import annotations

import struct

from moldau.log.producers.producer_state import Marker
from moldau.wire.batch import InvalidRecord, records

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
ABORT = 0
COMMIT = 1
MARKER_BYTES_MAX = 1024  # a marker has two dozen bytes; a batch that says it holds more is no marker


def read_marker(batch: memoryview, transaction_version: int = 0) -> Marker | None:
    """What a control batch says of its producer's transaction; None when it is about something else."""
    for record in records(batch, decompressed_bytes_max=MARKER_BYTES_MAX):
        if record.key is None or len(record.key) < _KEY.size:
            raise InvalidRecord("A control record's key has a version and a type")
        _, kind = _KEY.unpack_from(record.key)
        if kind not in (ABORT, COMMIT):
            return None
        if record.value is None or len(record.value) < _VALUE.size:
            raise InvalidRecord("A transaction marker has a version and a coordinator epoch")
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
        return Marker(kind == COMMIT, coordinator_epoch, transaction_version)
    return None


def encode_marker(*, is_commit: bool, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Key and value of a marker's record."""
    return _KEY.pack(0, COMMIT if is_commit else ABORT), _VALUE.pack(0, coordinator_epoch)
