"""Lines of standard input become records to send."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

from moldau.cli.failures import UsageError
from moldau.cli.records.json import Headers, OutgoingRecord, record_from_json


class LineReader:
    """Turns a line into a record as the options of `moldau produce` say; wrong options are found at once."""

    def __init__(self, options: Namespace) -> None:
        self.is_json = options.input != "text"
        self.headers: Headers = [header(text) for text in options.header]
        self.fixed_key = encoded(options.key)
        self.null_marker = encoded(options.null_marker)
        self.separator = encoded(options.key_separator)
        if self.separator == b"":
            raise UsageError("--key-separator: expected some text")
        if self.is_json and self.separator is not None:
            raise UsageError("--key-separator is for text input; json input has a field for the key")

    def record(self, line: bytes) -> OutgoingRecord:
        """ValueError says what is wrong with the line."""
        return self._from_json(line) if self.is_json else self._from_text(line)

    def _from_text(self, line: bytes) -> OutgoingRecord:
        key, value = (self.fixed_key, line) if self.separator is None else split_key(line, self.separator)
        return OutgoingRecord(self._or_null(key), self._or_null(value), self.headers)

    def _from_json(self, line: bytes) -> OutgoingRecord:
        record = record_from_json(line)
        return OutgoingRecord(
            record.key if self.fixed_key is None else self.fixed_key,
            record.value,
            record.headers + self.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )

    def _or_null(self, content: bytes | None) -> bytes | None:
        return None if content == self.null_marker else content


def read_records(lines: Iterable[bytes], reader: LineReader) -> Iterator[OutgoingRecord]:
    for number, line in enumerate(lines, start=1):
        try:
            record = reader.record(line.removesuffix(b"\n").removesuffix(b"\r"))
        except ValueError as wrong:
            raise UsageError(f"line {number} of the input: {wrong}") from None
        yield record


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
