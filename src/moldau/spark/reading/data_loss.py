"""What a query can no longer read, said exactly: topic, partition, range, how many, and why."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moldau.core.ids import TopicPartition

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets of one partition that were wanted and are not there."""

    place: TopicPartition
    start: int
    end: int
    reason: str

    def __str__(self) -> str:
        count = self.end - self.start
        return (
            f"topic {self.place.topic!r} partition {self.place.partition}: offsets {self.start} to {self.end - 1}, "
            f"up to {count} record{'' if count == 1 else 's'} ({self.reason})"
        )


class DataLossError(RuntimeError):
    """The query asked for records that are gone, and `failOnDataLoss` is on."""

    def __init__(self, losses: Sequence[Loss]) -> None:
        super().__init__(
            f"{report(losses)}. The query stops because failOnDataLoss is true; "
            "with failOnDataLoss=false it goes on with what is left"
        )


class OtherTopic(Exception):
    """Records were read of a topic by its name, and the name is another topic's."""


class TopicMadeAnew(RuntimeError):
    """A task may have read records of another topic than the one that its batch was planned for."""

    def __init__(self, place: TopicPartition) -> None:
        super().__init__(
            f"topic {place.topic!r} was deleted and made anew while partition {place.partition} was read: "
            "nothing of this batch counts, and run again it knows what is lost"
        )


def check_same_topic(planned: str, found: str | None) -> None:
    """A topic that is gone is no other: what was read was its own."""
    if found not in (None, planned):
        raise OtherTopic


def losses_between(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    earliest: Mapping[TopicPartition, int],
    appeared: Iterable[TopicPartition] = (),
) -> list[Loss]:
    """What of the range is lost, by the earliest offsets that the broker still has.

    A partition that appeared since the last batch was never read: what its start lacks is lost too.
    """
    lost = []
    for place in sorted(start):
        if place not in end:
            # Nobody knows how much there was; that one offset stands for the partition.
            lost.append(Loss(place, start[place], start[place] + 1, "the partition is gone with all that was in it"))
        elif end[place] < start[place]:
            reason = f"the partition now ends at {end[place]}: the topic was made anew, or records were truncated"
            lost.append(Loss(place, end[place], start[place], reason))
        elif place in earliest and earliest[place] > start[place] and end[place] > start[place]:
            lost.append(Loss(place, start[place], min(earliest[place], end[place]), "deleted before they were read"))
    for place in sorted(appeared):
        if earliest.get(place, 0) > 0:
            lost.append(Loss(place, 0, earliest[place], "deleted before the new partition was first read"))
    return lost


def report(losses: Sequence[Loss]) -> str:
    """One line: of what a Python process raises Spark's users are told no more."""
    total = sum(loss.end - loss.start for loss in losses)
    told = "; ".join(map(str, losses))
    return f"Data was lost, up to {total} record{'' if total == 1 else 's'} in all: {told}"


def raise_or_warn(losses: Sequence[Loss], *, fail: bool) -> None:
    if not losses:
        return
    if fail:
        raise DataLossError(losses)
    LOGGER.warning("%s", report(losses))
