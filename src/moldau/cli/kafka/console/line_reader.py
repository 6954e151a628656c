"""Lines become records by the properties of Apache Kafka's LineMessageReader: headers, a key and a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.kafka.console.properties import is_true
from moldau.cli.records.input import LINE_END, pieces
from moldau.cli.records.json import Headers, OutgoingRecord

SEPARATORS = {
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "key.separator": "\t",
    "null.marker": None,
}
DIFFERENT = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)


class LineMessageReader:
    def __init__(self, properties: Mapping[str, str]) -> None:
        texts = {name: properties.get(name, usual) for name, usual in SEPARATORS.items()}
        for name in ("headers.delimiter", "headers.key.separator", "key.separator"):
            if texts[name] == "":
                raise UsageError(f"{name}: expected some text")
        for one, other in DIFFERENT:
            if texts[one] is not None and texts[one] == texts[other]:
                raise UsageError(f"{one} and {other} may not be equal")
        self._of = {name: text.encode() for name, text in texts.items() if text is not None}
        self._null = self._of.get("null.marker")
        try:
            self._between_headers = re.compile(self._of["headers.separator"])
        except re.error as wrong:
            raise UsageError(f"headers.separator: no regular expression: {wrong}") from None
        self._parses_key = is_true(properties, "parse.key")
        self._parses_headers = is_true(properties, "parse.headers")
        self._ignores_errors = is_true(properties, "ignore.error")

    def records(self, chunks: Iterable[bytes]) -> Iterator[OutgoingRecord]:
        for number, line in enumerate(_lines(chunks), start=1):
            yield self._record(line, number)

    def _record(self, line: bytes, number: int) -> OutgoingRecord:
        where = f"on line number {number}: '{line.decode(errors='replace')}'"
        headers, key = None, None
        rest = line
        if self._parses_headers:
            headers, rest = self._split(rest, "headers.delimiter", where)
        value = rest
        if self._parses_key:
            key, value = self._split(rest, "key.separator", where)
        named = [] if headers is None or headers == self._null else self._headers(headers, number)
        return OutgoingRecord(self._or_null(key), self._or_null(value), named)

    def _split(self, rest: bytes, separator: str, where: str) -> tuple[bytes | None, bytes]:
        before, found, behind = rest.partition(self._of[separator])
        if found:
            return before, behind
        if self._ignores_errors:
            return None, rest
        raise CommandFailed(f"No {separator.replace('.', ' ')} found {where}")

    def _headers(self, text: bytes, number: int) -> Headers:
        pairs = self._between_headers.split(text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return [self._header(pair, number) for pair in pairs]

    def _header(self, pair: bytes, number: int) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self._of["headers.key.separator"])
        shown = pair.decode(errors="replace")
        if not found and not self._ignores_errors:
            raise CommandFailed(f"No header key separator found in pair '{shown}' on line number {number}")
        if not found:
            return shown, None
        if name == self._null:
            raise CommandFailed(
                f"Header keys should not be equal to the null marker '{name.decode()}' as they can't be null"
            )
        return name.decode(errors="replace"), self._or_null(value)

    def _or_null(self, content: bytes | None) -> bytes | None:
        return None if content is None or content == self._null else content


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """As Java ends them: by a line feed, a carriage return, or both."""
    for line in pieces(chunks, LINE_END):
        yield from line.split(b"\r")
