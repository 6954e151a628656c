"""Log directories made by hand: what is in them is known to the byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from moldau.wire.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Codec, Record, build_batch

NAME = "00000000000000000100"


def plain(offset: int, count: int = 2, *, codec: Codec = Codec.NONE, **header: int) -> bytes:
    records = [
        Record(offset + n, 1_000 + n, f"k{n}".encode(), None if n else "vä".encode(), ((b"h", b"x"), (b"i", None)))
        for n in range(count)
    ]
    return bytes(build_batch(records, codec=codec, **header))


def marker(offset: int, *, kind: int, epoch: int) -> bytes:
    record = Record(offset, 3_000, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, epoch))
    return bytes(
        build_batch([record], attributes=CONTROL | TRANSACTIONAL | LOG_APPEND_TIME, producer_id=9, producer_epoch=1)
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Four batches: of one producer, compressed, with a gap before it, and the marker of an abort."""
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(
        plain(100, producer_id=9, producer_epoch=1, base_sequence=0x7FFFFFFF, attributes=TRANSACTIONAL)
        + plain(102, codec=Codec.GZIP)
        + plain(107, 1)
        + marker(108, kind=0, epoch=4)
    )
    return path
