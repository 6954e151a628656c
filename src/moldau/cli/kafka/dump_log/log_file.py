"""The batches of a log file, read one at a time: a file of any size, also one that a broker appends to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from moldau.cli.kafka.dump_log.findings import Damaged
from moldau.wire.batch import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    OVERHEAD_BYTES,
    BatchHeader,
    Record,
    declared_bytes,
    read_header,
    records,
)
from moldau.wire.crc import crc32c

LEAST_BODY_BYTES = 14  # of the oldest message format, without its offset and length
HEADER_TO_MAGIC_BYTES = MAGIC_AT + 1
CHUNK_BYTES = 1 << 20
DEEP_BATCH_BYTES_MAX = 256 << 20  # to read records a batch is held whole; a damaged length may say anything
UNFOLDED_BYTES_MAX = 512 << 20  # what a compressed batch may become


class LogFile:
    """As long as it was when it was opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._file).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def batches(self, at: int = 0, *, bytes_max: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers of whole batches; `Damaged` where one can't be a batch."""
        end = self.size if bytes_max is None else min(self.size, at + bytes_max)
        while at < end - HEADER_TO_MAGIC_BYTES:
            start = os.pread(self._file, HEADER_BYTES, at)
            length_bytes = declared_bytes(start, 0)
            if length_bytes < LEAST_BODY_BYTES + OVERHEAD_BYTES:
                raise Damaged(
                    f"{self.path}: byte {at}: found record size {length_bytes - OVERHEAD_BYTES}"
                    f" smaller than minimum record overhead ({LEAST_BODY_BYTES})"
                )
            if at + length_bytes > end:
                return
            yield at, self._header(start, at, length_bytes)
            at += length_bytes

    def _header(self, start: bytes, at: int, length_bytes: int) -> BatchHeader:
        if start[MAGIC_AT] < MAGIC:
            raise Damaged(
                f"{self.path}: byte {at}: message format version {start[MAGIC_AT]}, which only Kafka before 0.11 wrote"
            )
        if length_bytes < HEADER_BYTES:
            raise Damaged(
                f"{self.path}: byte {at}: a batch of {length_bytes} bytes; its header alone has {HEADER_BYTES}"
            )
        return read_header(start)

    def is_valid(self, at: int, header: BatchHeader) -> bool:
        """Whether the checksum is right; a batch of any size is read in pieces."""
        crc, position, end = 0, at + ATTRIBUTES_AT, at + header.length_bytes
        while position < end:
            piece = os.pread(self._file, min(CHUNK_BYTES, end - position), position)
            if not piece:  # truncated meanwhile
                return False
            crc = crc32c(piece, crc)
            position += len(piece)
        return crc == header.crc

    def records(self, at: int, header: BatchHeader) -> Iterator[Record]:
        """Those of one batch. `InvalidRecord` and `CorruptBatch` come out for what is broken inside it."""
        if header.length_bytes > DEEP_BATCH_BYTES_MAX:
            raise Damaged(
                f"{self.path}: byte {at}: a batch of {header.length_bytes} bytes; {DEEP_BATCH_BYTES_MAX} can be read"
            )
        data = bytearray(header.length_bytes)
        read = os.preadv(self._file, [data], at)
        return records(memoryview(data)[:read], decompressed_bytes_max=UNFOLDED_BYTES_MAX)
