"""Text of clients that has to fit somewhere."""

from __future__ import annotations

NAME_CHARS_SHOWN_MAX = 1_000  # a name may have 32,767 bytes, and so may the message that repeats it


def cut(text: str, bytes_max: int) -> str:
    """The beginning of a text, without half a character at its end."""
    if len(text) * 4 <= bytes_max:  # no character takes more than four bytes
        return text
    raw = text.encode()
    return text if len(raw) <= bytes_max else raw[:bytes_max].decode(errors="ignore")


def shown(name: str) -> str:
    """A client's name for something, in a message that must not become too long for an answer."""
    return name if len(name) <= NAME_CHARS_SHOWN_MAX else f"{name[:NAME_CHARS_SHOWN_MAX]}..."
