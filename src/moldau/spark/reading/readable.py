"""What of a planned batch can be read, and what of it is lost: pure rules on offsets and topic ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import Offsets
from moldau.spark.offsets.stream_offsets import StreamOffsets, remade
from moldau.spark.reading.data_loss import Loss, losses_between

MADE_ANEW = (
    "the topic was deleted and made anew; what it had from there on is gone, and the new one is read from its start"
)
NO_LONGER_THERE = "the topic was deleted after this batch was planned"


@dataclass(frozen=True, slots=True)
class Readable:
    """Where reading starts and ends in the partitions that there are, and what was to be read and is gone."""

    start: Offsets
    end: Offsets
    losses: list[Loss]


def readable(
    began: StreamOffsets,
    ended: StreamOffsets,
    *,
    topic_ids: Mapping[str, str],
    earliest: Mapping[TopicPartition, int],
) -> Readable:
    """A batch between two offsets, by the ids that topics have now and the earliest offsets of partitions that exist.

    A batch of a topic that has another id by now reads nothing of it: the records at those offsets are others.
    """
    anew, gone = remade(began.topic_ids, ended.topic_ids), remade(ended.topic_ids, topic_ids)
    there = {place: end for place, end in ended.offsets.items() if place in earliest and place.topic not in gone}
    same = {place: offset for place, offset in began.offsets.items() if place.topic not in anew}
    compared = {place: offset for place, offset in same.items() if place in there or place not in ended.offsets}
    appeared = [place for place in there if place not in same]
    start = {place: max(same.get(place, 0), earliest[place]) for place in there}
    losses = [
        *losses_between(compared, there, earliest=earliest, appeared=appeared),
        *_ended_topics(began, anew - gone),
        *_unreadable(same, ended.offsets, there),
    ]
    return Readable(start, there, sorted(losses, key=lambda loss: loss.place))


def _ended_topics(began: StreamOffsets, topics: Collection[str]) -> list[Loss]:
    """Nobody knows how much the old topic had; one offset stands for it."""
    return [
        Loss(place, offset, offset + 1, MADE_ANEW) for place, offset in began.offsets.items() if place.topic in topics
    ]


def _unreadable(same: Offsets, ended: Mapping[TopicPartition, int], there: Offsets) -> list[Loss]:
    return [
        Loss(place, same.get(place, 0), end, NO_LONGER_THERE)
        for place, end in ended.items()
        if place not in there and end > same.get(place, 0)
    ]
