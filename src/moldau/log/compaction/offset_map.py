"""The latest offset of every key in the dirty part of a log, in bounded memory."""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 16
ENTRY_BYTES = 200  # measured: digest, offset and their place in a dict
ENTRIES_MIN = 150_000  # a batch of the default size cannot hold more keys, so every round gets somewhere


class OffsetMap:
    """Keys of 16 bytes and more are remembered by a digest, so that memory depends on their number alone."""

    __slots__ = ("_entries_max", "_offsets", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._entries_max = max(memory_bytes // ENTRY_BYTES, ENTRIES_MIN)
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._entries_max

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[_brief(key)] = offset

    def get(self, key: bytes) -> int:
        """-1 for a key that the dirty part does not have."""
        return self._offsets.get(_brief(key), -1)

    def advance(self, offset: int) -> None:
        """Everything up to this offset is in the map."""
        self.latest_offset = max(self.latest_offset, offset)


def _brief(key: bytes) -> bytes:
    """Shorter keys stand for themselves: no digest is as short, so the two cannot be confused."""
    return key if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()
