"""Offsets of partitions by their leaders: where a log begins and ends, and what was written at some time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.client.cluster import Cluster
from moldau.client.leaders import offsets_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

EARLIEST, LATEST = -2, -1  # instead of a timestamp
NONE_SO_LATE = -1  # instead of an offset

Found = dict[TopicPartition, int]
Codes = dict[TopicPartition, int]


def offsets_at(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> tuple[Found, Codes]:
    """The first offset at each timestamp or later, EARLIEST or LATEST, and an error code for each that has none.

    A leader that moves is followed; a partition that nobody leads now is not waited for.
    """
    answers = offsets_of(cluster, wanted, waits_for_elections=False)
    found = {place: answer.offset for place, answer in answers.items() if answer.code == ErrorCode.NONE}
    return found, {place: answer.code for place, answer in answers.items() if place not in found}


def starts(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[Found, Codes]:
    return offsets_at(cluster, dict.fromkeys(places, EARLIEST))


def ends(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[Found, Codes]:
    return offsets_at(cluster, dict.fromkeys(places, LATEST))


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> tuple[list[TopicPartition], dict[str, int]]:
    """All partitions of these topics, in order, and an error code for each topic that can't be asked about."""
    wanted = list(dict.fromkeys(topics))
    if not wanted:
        return [], {}
    found = cluster.metadata(wanted).topics
    refused = {each.name or "": each.error_code for each in found if each.error_code != ErrorCode.NONE}
    places = [TopicPartition(each.name or "", part.partition_index) for each in found for part in each.partitions]
    return sorted(place for place in places if place.topic not in refused), refused
