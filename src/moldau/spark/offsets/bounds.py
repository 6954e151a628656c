"""Offsets as JSON in the stock connector's words, and where a read begins and ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from moldau.core.ids import TopicPartition

EARLIEST = -2
LATEST = -1
TOPIC_IDS = "#topicIds"  # stands among topics in a checkpoint's offsets, and no topic can be named so


Offsets: TypeAlias = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same bound in every partition: `EARLIEST` or `LATEST`."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition; `EARLIEST` and `LATEST` may stand among them."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """In every partition the first record that is not older."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtTimestamps:
    """For each partition a time of its own."""

    timestamps_ms: Mapping[TopicPartition, int]


Bound: TypeAlias = Everywhere | AtOffsets | AtTimestamp | AtTimestamps


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of one partition from `start` up to, not including, `end`."""

    place: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Topics and partitions in order, so that equal offsets are equal text: Spark compares them as such."""
    shaped: dict[str, dict[str, int]] = {}
    for place in sorted(offsets):
        shaped.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return shaped


def offsets_from_json(shaped: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in shaped.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(text: str) -> Offsets:
    """`{"topic": {"0": 23, "1": -2}}`; what is not of that shape is a `ValueError` that says so."""
    # Offsets are copied from checkpoints and progress, which have the topics' ids beside them.
    shaped = {topic: partitions for topic, partitions in _parse_object(text).items() if topic != TOPIC_IDS}
    if not all(isinstance(partitions, dict) for partitions in shaped.values()):
        raise ValueError("expected an offset for each partition")
    offsets = offsets_from_json(shaped)
    if not all(isinstance(offset, int) and not isinstance(offset, bool) for offset in offsets.values()):
        raise ValueError("expected whole numbers")
    if not all(place.partition >= 0 for place in offsets):
        raise ValueError("a partition has no negative number")
    return offsets


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """`{"topic": [0, 1]}`; what is not of that shape is a `ValueError` that says so."""
    shaped = _parse_object(text)
    places: list[TopicPartition] = []
    for topic, partitions in shaped.items():
        if not isinstance(partitions, list) or not all(type(each) is int and each >= 0 for each in partitions):
            raise ValueError(f"expected a list of partitions for {topic!r}")
        places += [TopicPartition(topic, partition) for partition in partitions]
    return tuple(sorted(set(places)))


def check_covers(offsets: Mapping[TopicPartition, int], places: Iterable[TopicPartition]) -> str | None:
    """What is wrong when offsets are given for other partitions than there are; None when nothing is."""
    wanted, given = set(places), set(offsets)
    if wanted == given:
        return None
    parts = []
    if wanted - given:
        parts.append(f"it leaves out {', '.join(map(str, sorted(wanted - given)))}")
    if given - wanted:
        parts.append(f"there is no {', '.join(map(str, sorted(given - wanted)))}")
    return f"{' and '.join(parts)}; name every partition, with -2 for its earliest and -1 for its latest offset"


def _parse_object(text: str) -> dict[str, Any]:
    try:
        shaped = json.loads(text)
    except json.JSONDecodeError as wrong:
        raise ValueError(f"not JSON: {wrong}") from None
    if not isinstance(shaped, dict) or not shaped:
        raise ValueError("expected an object with a member for each topic")
    return shaped
