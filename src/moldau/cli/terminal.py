"""What strangers wrote, on a terminal: control characters are shown, and do nothing.

Anybody who may join a group or send a record says what is in its name, a client id or a value; a terminal would move
its cursor, change its title, or do worse, by what is in there. Files and pipes get everything as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.core.visible import visible, visible_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, TextIO


class VisibleText:
    """Stands for a terminal's stream; what it does not do itself the stream does."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.buffer = VisibleBytes(stream)

    def write(self, text: str) -> int:
        self._stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class VisibleBytes:
    """A character of UTF-8 that two writes share is not looked for: no tool cuts its text."""

    def __init__(self, stream: TextIO) -> None:
        self._buffer: BinaryIO = stream.buffer

    def write(self, text: bytes) -> int:
        self._buffer.write(visible_bytes(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)
