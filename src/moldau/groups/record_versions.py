"""The number that every key and value of `__consumer_offsets` begins with: a kind, or a version."""

from __future__ import annotations

from struct import Struct

from moldau.core.errors import ProtocolViolation

SHORT = Struct(">h")


def version_of(view: memoryview) -> int:
    if len(view) < SHORT.size:
        raise ProtocolViolation(f"a record of {len(view)} bytes has no version")
    version: int = SHORT.unpack_from(view)[0]
    return version


def known_version(value: memoryview, versions: tuple[int, int]) -> int:
    version = version_of(value)
    if not versions[0] <= version <= versions[1]:
        raise ProtocolViolation(f"a record's value has version {version}; known are {versions[0]} to {versions[1]}")
    return version
