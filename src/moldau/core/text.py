"""Text of clients that has to fit somewhere."""

from __future__ import annotations


def cut(text: str, bytes_max: int) -> str:
    """The beginning of a text, without half a character at its end."""
    if len(text) * 4 <= bytes_max:  # no character takes more than four bytes
        return text
    raw = text.encode()
    return text if len(raw) <= bytes_max else raw[:bytes_max].decode(errors="ignore")
