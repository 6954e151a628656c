"""Standard input and files become records to send: a record a line, or between delimiters, or a file each."""

from __future__ import annotations

import os
import select
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator

from moldau.cli.failures import UsageError
from moldau.cli.records.json import Headers, OutgoingRecord, record_from_json
from moldau.cli.records.offsets import parse_moment
from moldau.core.clock import SystemClock

CHUNK_BYTES = 1 << 16
IDLE_S = 0.05  # how long a delivery report may wait while nothing is typed
LINE_END = b"\n"
STANDARD_INPUT = "-"

Idle = Callable[[], None]


class LineReader:
    """Turns a line into a record as the options of `moldau produce` say; wrong options are found at once."""

    def __init__(self, options: Namespace) -> None:
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
        """ValueError says what is wrong with the line."""
        return self._from_json(line) if self.is_json else self._from_text(line)

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
        record = record_from_json(line)
        return OutgoingRecord(
            record.key if self.fixed_key is None else self.fixed_key,
            record.value,
            record.headers + self.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms if self.timestamp_ms is None else self.timestamp_ms,
        )

    def _or_null(self, content: bytes | None) -> bytes | None:
        return None if content == self.null_marker else content


def records_of(options: Namespace, reader: LineReader, idle: Idle) -> Iterator[OutgoingRecord]:
    """Of the files, or of standard input. `idle` is called again and again while nothing comes."""
    names = options.file or [STANDARD_INPUT]
    for name in names:
        where = "the input" if name == STANDARD_INPUT else name
        chunks = chunks_of(name, idle)
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


def check_files(names: Iterable[str]) -> None:
    """Before anything is sent."""
    for name in names:
        if name != STANDARD_INPUT:
            try:
                os.close(os.open(name, os.O_RDONLY))
            except OSError as wrong:
                raise UsageError(f"cannot read {name}: {wrong.strerror}") from None


def chunks_of(name: str, idle: Idle) -> Iterator[bytes]:
    descriptor = 0 if name == STANDARD_INPUT else os.open(name, os.O_RDONLY)
    try:
        while True:
            while not select.select([descriptor], [], [], IDLE_S)[0]:
                idle()
            chunk = os.read(descriptor, CHUNK_BYTES)
            if not chunk:
                return
            yield chunk
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
