"""Batches and records of a log, in the lines of Apache Kafka's tool."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from moldau.cli.kafka.dump_log.command import BYTES_MAX_DEFAULT
from moldau.cli.kafka.dump_log.control import control_words
from moldau.cli.kafka.dump_log.decoding import Parser, Undecodable
from moldau.cli.kafka.dump_log.findings import Damaged, Findings, add_pair
from moldau.cli.kafka.dump_log.log_file import LogFile
from moldau.cli.progress import Progress
from moldau.core.errors import ApiError, ProtocolViolation
from moldau.core.ids import NO_OFFSET
from moldau.wire.batch import NO_SEQUENCE, SEQUENCE_MAX, BatchHeader, Codec, Record

BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"
LINES_AT_ONCE = 1_000

_SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(frozen=True, slots=True)
class LogOptions:
    is_deep: bool
    prints_records: bool
    skips_metadata: bool
    bytes_max: int
    parser: Parser
    progress: Progress


def dump_log(path: str, options: LogOptions, findings: Findings) -> None:
    print(_headline(path))
    limit = None if options.bytes_max == BYTES_MAX_DEFAULT else options.bytes_max
    valid_bytes = 0
    with LogFile(path) as file:
        dump = _RecordDump(file, options, findings)
        for at, header in file.batches(bytes_max=limit):
            is_valid = file.is_valid(at, header)
            sys.stdout.write(_batch_line(at, header, is_valid=is_valid))
            if not is_valid:
                findings.add_damage(f"{path}: byte {at}: the checksum of the batch is wrong")
            if options.is_deep:
                dump.batch(at, header)
            options.progress.add(header.length_bytes)
            valid_bytes = at + header.length_bytes
        rest = file.size - valid_bytes
        if rest > 0 and limit is None:
            print(f"Found {rest} invalid bytes at the end of {os.path.basename(path)}")
            findings.add_damage(f"{path}: byte {valid_bytes}: the last {rest} bytes are no whole batch")


def base_offset_of(path: str) -> int:
    name = os.path.basename(path).partition(".")[0]
    if not (name.isascii() and name.isdecimal()):
        raise Damaged(f"{path}: the name is no offset; expected such as 00000000000000000000.log")
    return int(name)


def _headline(path: str) -> str:
    name = os.path.basename(path)
    if name.endswith(".log"):
        return f"Log starting offset: {base_offset_of(path)}"
    if name == BOOTSTRAP_SNAPSHOT:
        return "KRaft bootstrap snapshot"
    found = _SNAPSHOT_NAME.fullmatch(name)
    if found is None:
        raise Damaged(f"{path}: the name is no offset and epoch of a snapshot")
    return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"


def _batch_line(at: int, header: BatchHeader, *, is_valid: bool) -> str:
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_truth(header.is_transactional)}"
        f" isControl: {_truth(header.is_control)}"
        f" deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'}"
        f" position: {at} {_timestamp_type(header)}: {header.max_timestamp} size: {header.length_bytes}"
        f" magic: {header.magic} compresscodec: {_codec_name(header.codec)} crc: {header.crc}"
        f" isvalid: {_truth(is_valid)}\n"
    )


class _RecordDump:
    """Of one file, batch after batch."""

    def __init__(self, file: LogFile, options: LogOptions, findings: Findings) -> None:
        self._file = file
        self._options = options
        self._findings = findings
        self._last_offset = NO_OFFSET

    def batch(self, at: int, header: BatchHeader) -> None:
        lines: list[str] = []
        try:
            for record in self._file.records(at, header):
                self._follow(record.offset)
                lines.append(_record_line(record, header, self._options))
                if len(lines) >= LINES_AT_ONCE:
                    sys.stdout.writelines(lines)
                    lines.clear()
        except ApiError as wrong:
            self._findings.add_damage(f"{self._file.path}: byte {at}: {wrong.message}")
        except (ProtocolViolation, Undecodable) as wrong:
            self._findings.add_damage(f"{self._file.path}: byte {at}: {wrong}")
        finally:
            sys.stdout.writelines(lines)

    def _follow(self, offset: int) -> None:
        if self._last_offset not in (NO_OFFSET, offset - 1):
            add_pair(self._findings.gaps, os.path.abspath(self._file.path), self._last_offset, offset)
        self._last_offset = offset


def _record_line(record: Record, header: BatchHeader, options: LogOptions) -> str:
    parts = [] if options.skips_metadata else [*_metadata(record, header)]
    if options.prints_records and not header.is_control:
        key, value = options.parser(record)
        parts += [] if key is None else [f"key: {key}"]
        parts += [] if value is None else [f"payload: {value}"]
    return f"| {' '.join(parts)}\n" if parts else "\n"


def _metadata(record: Record, header: BatchHeader) -> Iterator[str]:
    names = ",".join(str(name, errors="replace") for name, _ in record.headers)
    yield (
        f"offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} keySize: {_size(record.key)}"
        f" valueSize: {_size(record.value)} sequence: {_sequence(record, header)} headerKeys: [{names}]"
    )
    if header.is_control:
        yield control_words(record)


def _sequence(record: Record, header: BatchHeader) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + record.offset - header.base_offset) & SEQUENCE_MAX


def _size(data: bytes | bytearray | memoryview | None) -> int:
    return -1 if data is None else len(data)


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _codec_name(codec: int) -> str:
    """One that there is not makes Apache Kafka's tool end; here the damage is told when the batch is opened."""
    return Codec(codec).name.lower() if codec in Codec.__members__.values() else f"unknown({codec})"


def _truth(value: bool) -> str:
    return "true" if value else "false"
