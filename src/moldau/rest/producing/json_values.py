"""JSON values out of a stream of bytes, cut where each one ends, before the next is there.

{"value": 1} {"value": 2}      values one after another, with or without white space between them
[{"value": 1}, {"value": 2}]   an array is the stream of what is in it, as Jackson's streams have it
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = re.compile(rb"[ \t\r\n]*")
_STRUCTURE = re.compile(rb'[{}\[\]"]')
_IN_STRING = re.compile(rb'["\\]')
_AFTER_SCALAR = re.compile(rb'[ \t\r\n,\[\]{}"]')
_OPENING, _CLOSING = b"{[", b"}]"


class NotJson(Exception):
    """No value can be found from here on; the message says why."""


class ValueTooLarge(NotJson):
    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"a value is larger than {bytes_max} bytes")


class JsonValues:
    """Whether a value is JSON inside is for its reader to say: here only its end is found."""

    def __init__(self, value_bytes_max: int) -> None:
        self.value_bytes_max = value_bytes_max
        self._buffer = bytearray()
        self._at = 0  # what is before is scanned
        self._start: int | None = None
        self._depth = 0
        self._is_in_string = False
        self._is_in_array = False
        self._is_begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The values that are complete with this chunk. Raises NotJson."""
        self._buffer += chunk
        while (value := self._next()) is not None:
            yield value
        self._forget()
        if len(self._buffer) > self.value_bytes_max:
            raise ValueTooLarge(self.value_bytes_max)

    def end(self) -> bytes | None:
        """The number or word that only the end of the stream ends. Raises NotJson if something is unfinished."""
        if self._start is None:
            if self._is_in_array:
                raise NotJson("the input ends within an array")
            return None
        if self._depth or self._is_in_string or self._buffer[self._start] in b'{["' or self._is_in_array:
            raise NotJson("the input ends within a value")
        value, self._start = bytes(self._buffer[self._start :]), None
        return value

    def _forget(self) -> None:
        """What was cut off or skipped."""
        keep_from = self._at if self._start is None else self._start
        del self._buffer[:keep_from]
        self._at -= keep_from
        if self._start is not None:
            self._start = 0

    def _next(self) -> bytes | None:
        if self._start is None and not self._skip_to_value():
            return None
        assert self._start is not None, "a value begins here"
        end = self._end_of_value(self._start)
        if end is None:
            return None
        if end - self._start > self.value_bytes_max:
            raise ValueTooLarge(self.value_bytes_max)
        value, self._start, self._at = bytes(self._buffer[self._start : end]), None, end
        return value

    def _skip_to_value(self) -> bool:
        """Past what stands between values. False if no value has begun yet."""
        while True:
            blank = _BLANK.match(self._buffer, self._at)
            assert blank is not None, "nothing is blank, too"
            self._at = blank.end()
            if self._at == len(self._buffer):
                return False
            byte = bytes(self._buffer[self._at : self._at + 1])
            if byte == b"[" and not self._is_begun:
                self._is_in_array = self._is_begun = True
            elif self._is_in_array and byte in (b",", b"]"):
                self._is_in_array = byte == b","
            elif byte in _CLOSING or byte in (b",", b":"):
                raise NotJson(f"unexpected character {byte.decode()!r} between values")
            else:
                self._is_begun, self._start = True, self._at
                return True
            self._at += 1

    def _end_of_value(self, start: int) -> int | None:
        if self._buffer[start] not in b'{["':
            found = _AFTER_SCALAR.search(self._buffer, max(self._at, start))
            self._at = len(self._buffer) if found is None else found.start()
            return None if found is None else found.start()
        while True:
            found = (_IN_STRING if self._is_in_string else _STRUCTURE).search(self._buffer, self._at)
            if found is None:
                self._at = len(self._buffer)
                return None
            if found[0] == b"\\":
                if found.end() == len(self._buffer):  # what it escapes is in the next chunk
                    self._at = found.start()
                    return None
                self._at = found.end() + 1
                continue
            self._at = found.end()
            self._take(found[0])
            if not self._depth and not self._is_in_string:
                return self._at

    def _take(self, byte: bytes) -> None:
        if byte == b'"':
            self._is_in_string = not self._is_in_string
        else:
            self._depth += 1 if byte in _OPENING else -1
