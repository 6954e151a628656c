"""What a reset would do to a group: the rules, applied to what its partitions have at the moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import only
from moldau.client.groups.committed import committed_offsets
from moldau.client.groups.resetting import Known, NewOffset, Rule, Target, new_offset
from moldau.client.offsets import EARLIEST, LATEST, NONE_SO_LATE, Codes, Found, offsets_at
from moldau.core.ids import TopicPartition


class NoSuchPlaces(Exception):
    """Partitions that are not there, or have no leader, with an error code for each."""

    def __init__(self, codes: Codes) -> None:
        super().__init__(f"{', '.join(map(str, codes))}: {Refused(min(codes.values()))}")
        self.codes = codes


def new_offsets(
    cluster: Cluster, group: str, rules: Mapping[TopicPartition, Rule], *, counts_from_end: bool = False
) -> dict[TopicPartition, NewOffset]:
    """In the order of the partitions. Raises NoSuchPlaces, NothingCommitted and Refused.

    With `counts_from_end`, a group that has committed nothing is taken to be at the end, where consumers begin.
    """
    if not rules:
        return {}
    start_offsets = _all_of(cluster, dict.fromkeys(rules, EARLIEST))
    end_offsets = _all_of(cluster, dict.fromkeys(rules, LATEST))
    moments = {place: rule.number for place, rule in rules.items() if rule.target is Target.TIMESTAMP}
    at_times = {place: found for place, found in _all_of(cluster, moments).items() if found != NONE_SO_LATE}
    counts = any(rule.target in (Target.CURRENT, Target.SHIFT) for rule in rules.values())
    committed = only(committed_offsets(cluster, [group])) if counts else {}

    def elsewhere(place: TopicPartition) -> int | None:
        return end_offsets[place] if counts_from_end else None

    return {
        place: new_offset(
            rules[place],
            Known(
                start_offsets[place],
                end_offsets[place],
                committed[place].offset if place in committed else elsewhere(place),
                at_times.get(place),
            ),
            place,
        )
        for place in sorted(rules)
    }


def _all_of(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> Found:
    found, refused = offsets_at(cluster, wanted)
    if refused:
        raise NoSuchPlaces(dict(sorted(refused.items())))
    return found


def one_rule(rule: Rule, places: Iterable[TopicPartition]) -> dict[TopicPartition, Rule]:
    return dict.fromkeys(places, rule)
