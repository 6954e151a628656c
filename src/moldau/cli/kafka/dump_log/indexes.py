"""Index files, each entry looked up in the log beside it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from moldau.cli.kafka.dump_log.findings import Damaged, Findings, add_pair
from moldau.cli.kafka.dump_log.log import base_offset_of
from moldau.cli.kafka.dump_log.log_file import LogFile
from moldau.core.errors import ApiError
from moldau.log.indexes import transaction_index
from moldau.log.indexes.transaction_index import AbortedTransaction
from moldau.wire.batch import NO_TIMESTAMP

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
ENTRIES_AT_ONCE = 8_192


def dump_offset_index(
    path: str, findings: Findings, *, is_sanity_only: bool, is_verify_only: bool, message_bytes_max: int
) -> None:
    base = base_offset_of(path)
    with _log_beside(path) as log:
        size = os.path.getsize(path)
        if size < OFFSET_ENTRY.size:
            print(f"{path} is empty.")
            return
        if is_sanity_only:
            _check_offset_index(path, base, size)
            print(f"{path} passed sanity check.")
            return
        for number, (relative, position) in enumerate(_entries(path, OFFSET_ENTRY)):
            # A file that its broker laid out in advance ends in zeros.
            if relative == 0 and number > 0:
                return
            found = _last_offset_at(log, position, message_bytes_max)
            if found != base + relative:
                add_pair(findings.index_mismatches, os.path.abspath(path), base + relative, found)
                findings.padding_pairs += relative == position == 0
            if not is_verify_only:
                print(f"offset: {base + relative} position: {position}")


def dump_time_index(path: str, findings: Findings, *, is_sanity_only: bool, is_verify_only: bool) -> None:
    base = base_offset_of(path)
    with _log_beside(path) as log:
        if is_sanity_only:
            _check_time_index(path, base, os.path.getsize(path))
            print(f"{path} passed sanity check.")
            return
        before = NO_TIMESTAMP
        places = _Places(path, base)
        for number, (timestamp, relative) in enumerate(_entries(path, TIME_ENTRY)):
            if relative == 0 and number > 0:
                return
            known = findings.pair_count
            _check_time(log, places.at_or_before(relative), (timestamp, base + relative, before), path, findings)
            if timestamp == relative == 0:
                findings.padding_pairs += findings.pair_count - known
            if not is_verify_only:
                print(f"timestamp: {timestamp} offset: {base + relative}")
            before = timestamp


def dump_transaction_index(path: str) -> None:
    base_offset_of(path)
    with open(path, "rb") as file:
        while len(data := file.read(transaction_index.ENTRY.size)) == transaction_index.ENTRY.size:
            version, *numbers = transaction_index.ENTRY.unpack(data)
            if version > transaction_index.VERSION:
                raise Damaged(
                    f"Unexpected aborted transaction version {version} in transaction index {os.path.abspath(path)},"
                    f" current version is {transaction_index.VERSION}"
                )
            found = AbortedTransaction(*numbers)
            print(
                f"version: {version} producerId: {found.producer_id} firstOffset: {found.first_offset}"
                f" lastOffset: {found.last_offset} lastStableOffset: {found.last_stable_offset}"
            )
        if data:
            raise Damaged(f"{path}: the last {len(data)} bytes are no whole entry of {transaction_index.ENTRY.size}")


def _check_time(log: LogFile, start: int, entry: tuple[int, int, int], path: str, findings: Findings) -> None:
    timestamp, offset, before = entry
    place = os.path.abspath(path)
    for at, header in log.batches(start):
        if header.last_offset < offset:
            continue
        if header.last_offset > offset:
            add_pair(findings.offsets_not_found, place, offset, header.last_offset)
            return
        try:
            latest = max((record.timestamp for record in log.records(at, header)), default=NO_TIMESTAMP)
        except ApiError as wrong:
            raise Damaged(f"{log.path}: byte {at}: {wrong.message}") from None
        if latest != timestamp:
            add_pair(findings.timestamp_mismatches, place, timestamp, latest)
        if before >= timestamp:
            add_pair(findings.timestamps_out_of_order, place, timestamp, before)
        return
    add_pair(findings.offsets_not_found, place, offset, -1)


class _Places:
    """Where to begin to look for offsets that ever grow, by the offset index beside a time index."""

    def __init__(self, path: str, base: int) -> None:
        index = f"{os.path.join(os.path.dirname(path), f'{base:020}')}.index"
        self._entries = _entries(index, OFFSET_ENTRY) if os.path.exists(index) else iter(())
        self._reached = (0, 0)
        self._next: tuple[int, int] | None = next(self._entries, None)

    def at_or_before(self, relative: int) -> int:
        if relative < self._reached[0]:
            return 0  # out of order: from the beginning
        while self._next is not None and self._reached[0] <= self._next[0] <= relative:
            self._reached, self._next = self._next, next(self._entries, None)
            if self._reached[0] == 0:  # zeros at the end of the file
                break
        return self._reached[1]


def _log_beside(path: str) -> LogFile:
    log = os.path.join(os.path.dirname(path), f"{os.path.basename(path).partition('.')[0]}.log")
    try:
        return LogFile(log)
    except FileNotFoundError:
        raise Damaged(f"{path}: {log} is not there; entries are looked up in it") from None


def _entries(path: str, layout: struct.Struct) -> Iterator[tuple[int, int]]:
    with open(path, "rb") as file:
        while data := file.read(layout.size * ENTRIES_AT_ONCE):
            yield from layout.iter_unpack(data[: len(data) - len(data) % layout.size])


def _last_offset_at(log: LogFile, position: int, message_bytes_max: int) -> int:
    if not 0 <= position <= log.size:
        raise Damaged(f"{log.path}: an entry of its index leads to byte {position}; the log has {log.size}")
    for _, header in log.batches(position, bytes_max=message_bytes_max):
        return header.last_offset
    raise Damaged(
        f"{log.path}: byte {position}: no whole batch of at most {message_bytes_max} bytes (--max-message-size)"
    )


def _check_offset_index(path: str, base: int, size: int) -> None:
    place = os.path.abspath(path)
    last = base + _entry_at(path, OFFSET_ENTRY, size // OFFSET_ENTRY.size - 1)[0]
    if last < base:
        raise Damaged(
            f"Corrupt index found, index file {place} has non-zero size but the last offset is {last}"
            f" which is less than the base offset {base}"
        )
    if size % OFFSET_ENTRY.size:
        raise Damaged(
            f"Index file {place} is corrupt, found {size} bytes which is neither positive nor a multiple of"
            f" {OFFSET_ENTRY.size}"
        )


def _check_time_index(path: str, base: int, size: int) -> None:
    place = os.path.abspath(path)
    if size >= TIME_ENTRY.size:
        first = _entry_at(path, TIME_ENTRY, 0)[0]
        timestamp, relative = _entry_at(path, TIME_ENTRY, size // TIME_ENTRY.size - 1)
        found = f"Corrupt time index found, time index file ({place}) has non-zero size but the last"
        if timestamp < first:
            raise Damaged(f"{found} timestamp is {timestamp} which is less than the first timestamp {first}")
        if relative < 0:
            raise Damaged(f"{found} offset is {base + relative} which is less than the first offset {base}")
    if size % TIME_ENTRY.size:
        raise Damaged(
            f"Time index file {place} is corrupt, found {size} bytes which is neither positive nor a multiple of"
            f" {TIME_ENTRY.size}"
        )


def _entry_at(path: str, layout: struct.Struct, number: int) -> tuple[int, int]:
    with open(path, "rb") as file:
        file.seek(number * layout.size)
        first, second = layout.unpack(file.read(layout.size))
        return first, second
