"""Assignments as the simulated clients write them: numbers of partitions, in one byte each."""

from __future__ import annotations

from collections.abc import Sequence


def write_assignment(partitions: Sequence[int]) -> bytes:
    return bytes(partitions)


def read_assignment(assignment: bytes) -> list[int]:
    return list(assignment)


def shared_out(members: Sequence[str], partition_count: int) -> dict[str, bytes]:
    """As a leader assigns: everybody in turn."""
    return {
        member: write_assignment(range(at, partition_count, len(members))) for at, member in enumerate(sorted(members))
    }
