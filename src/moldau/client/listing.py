"""Offsets that partitions begin and end at, or have at a time; whoever asks needs all of them."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.cluster import Cluster, Refused, words_of
from moldau.client.leaders import MOVING, READ_COMMITTED, READ_UNCOMMITTED, offsets_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

__all__ = ["EARLIEST", "LATEST", "READ_COMMITTED", "READ_UNCOMMITTED", "list_offsets"]

EARLIEST, LATEST = -2, -1


def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """-1 where no record is that late. `Refused` if a partition has none to tell; leaders that move are waited for."""
    answers = offsets_of(cluster, timestamps, isolation=isolation)
    wrong = {place: answer.code for place, answer in answers.items() if answer.code != ErrorCode.NONE}
    for place, code in sorted(wrong.items(), key=lambda each: each[1] in MOVING):
        raise Refused(code, f"{place}: {words_of(code)}")
    return {place: answer.offset for place, answer in answers.items()}
