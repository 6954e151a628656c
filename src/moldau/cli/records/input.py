"""Standard input and files become records to send: a record a line, or between delimiters, or a file each."""

from __future__ import annotations

import os
import select
import stat
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.records.json import Headers, OutgoingRecord, record_from_json
from moldau.cli.records.offsets import parse_moment
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.cli.records.schemas.encoding import RecordEncoder

CHUNK_BYTES = 1 << 16
IDLE_S = 0.05  # how long a delivery report may wait while nothing is typed
LINE_END = b"\n"
STANDARD_INPUT = "-"

Idle = Callable[[], None]
Reading = Callable[[int], None]
"""Hears how many bytes were read."""


class LineReader:
    """Turns a line into a record as the options of `moldau produce` say; wrong options are found at once."""

    def __init__(self, options: Namespace, encoder: RecordEncoder | None = None) -> None:
        self.encoder = encoder
        self.is_json = options.input != "text"
        self.headers: Headers = [header(text) for text in options.header]
        self.fixed_key = encoded(options.key)
        self.null_marker = encoded(options.null_marker)
        self.separator = encoded(options.key_separator)
        self.is_tombstone = options.tombstone
        self.timestamp_ms = _moment(options.timestamp)
        if self.separator == b"":
            raise UsageError("--key-separator: expected some text")
        if self.is_json and self.separator is not None:
            raise UsageError("--key-separator is for text input; json input has a field for the key")
        if self.is_tombstone and (self.is_json or self.separator is not None):
            raise UsageError("--tombstone takes each line for a key; leave out --key-separator and json input")

    def record(self, line: bytes) -> OutgoingRecord:
        """ValueError says what is wrong with the line, CommandFailed why it does not fit its schema."""
        if self.is_json:
            return self._from_json(line)
        record = self._from_text(line)
        return record if self.encoder is None else self.encoder.from_text(record)

    def _from_text(self, line: bytes) -> OutgoingRecord:
        key: bytes | None
        value: bytes | None
        if self.is_tombstone:
            key, value = (line if self.fixed_key is None else self.fixed_key), None
        elif self.separator is None:
            key, value = self.fixed_key, line
        else:
            key, value = split_key(line, self.separator)
        return OutgoingRecord(self._or_null(key), self._or_null(value), self.headers, timestamp_ms=self.timestamp_ms)

    def _from_json(self, line: bytes) -> OutgoingRecord:
        record = record_from_json(line, None if self.encoder is None else self.encoder.from_json)
        if any("\0" in name for name, _ in record.headers):
            raise ValueError(r"headers: a name with \u0000, before which librdkafka would cut it")
        key, headers = record.key, record.headers + self.headers
        if self.fixed_key is not None:
            keyed = OutgoingRecord(self.fixed_key, None, headers)
            keyed = keyed if self.encoder is None else self.encoder.from_text(keyed)
            key, headers = keyed.key, keyed.headers
        return OutgoingRecord(
            key,
            record.value,
            headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms if self.timestamp_ms is None else self.timestamp_ms,
        )

    def _or_null(self, content: bytes | None) -> bytes | None:
        return None if content == self.null_marker else content


def records_of(options: Namespace, reader: LineReader, idle: Idle, reading: Reading) -> Iterator[OutgoingRecord]:
    """Of the files, or of standard input. `idle` is called again and again while nothing comes."""
    names = options.file or [STANDARD_INPUT]
    for name in names:
        where = "the input" if name == STANDARD_INPUT else name
        chunks = chunks_of(name, idle, reading)
        if options.whole:
            yield _record(b"".join(chunks), where, reader)
            continue
        for number, piece in enumerate(pieces(chunks, encoded(options.delimiter) or LINE_END), start=1):
            yield _record(piece, f"line {number} of {where}", reader)


def _record(content: bytes, where: str, reader: LineReader) -> OutgoingRecord:
    try:
        return reader.record(content)
    except ValueError as wrong:
        raise UsageError(f"{where}: {wrong}") from None
    except CommandFailed as refused:
        raise CommandFailed(f"{where}: {refused}", exit_code=refused.exit_code) from None


def check_files(names: Iterable[str]) -> None:
    """Before anything is sent."""
    for name in names:
        if name != STANDARD_INPUT:
            try:
                # A pipe is not tried: to leave it again would end whoever writes to it.
                if not stat.S_ISFIFO(os.stat(name).st_mode):
                    with open(name, "rb", buffering=0):  # which refuses a folder, too
                        pass
            except OSError as wrong:
                raise UsageError(f"cannot read {name}: {wrong.strerror}") from None


def bytes_of(names: Sequence[str]) -> int | None:
    """How many there will be; None where that is known at the end only."""
    found = [os.stat(0 if name == STANDARD_INPUT else name) for name in names or [STANDARD_INPUT]]
    return sum(each.st_size for each in found) if all(stat.S_ISREG(each.st_mode) for each in found) else None


def chunks_of(name: str, idle: Idle, reading: Reading = lambda _: None) -> Iterator[bytes]:
    descriptor = 0 if name == STANDARD_INPUT else os.open(name, os.O_RDONLY)
    try:
        while True:
            while not select.select([descriptor], [], [], IDLE_S)[0]:
                idle()
            chunk = os.read(descriptor, CHUNK_BYTES)
            if not chunk:
                return
            yield chunk
            reading(len(chunk))
    finally:
        if name != STANDARD_INPUT:
            os.close(descriptor)


def pieces(chunks: Iterable[bytes], delimiter: bytes) -> Iterator[bytes]:
    """What stands between delimiters; nothing behind the last one is no piece. A line may also end as on Windows."""
    held: list[bytes] = []  # a piece of megabytes comes in many chunks: they are joined once
    for chunk in chunks:
        if len(delimiter) == 1 and delimiter not in chunk:
            held.append(chunk)
            continue
        *whole, rest = b"".join([*held, chunk]).split(delimiter)
        held = [rest]
        for piece in whole:
            yield _trimmed(piece, delimiter)
    last = b"".join(held)
    if last:
        yield _trimmed(last, delimiter)


def _trimmed(piece: bytes, delimiter: bytes) -> bytes:
    return piece.removesuffix(b"\r") if delimiter == LINE_END else piece


def header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--header: expected NAME=VALUE, not {text!r}")
    return name, value.encode()


def split_key(line: bytes, separator: bytes) -> tuple[bytes, bytes]:
    key, found, value = line.partition(separator)
    if not found:
        raise ValueError(f"no key: the line has no {separator.decode()!r}")
    return key, value


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_moment(text, now_ms=SystemClock().now_ms())
    except ValueError as wrong:
        raise UsageError(f"--timestamp: {wrong}") from None
