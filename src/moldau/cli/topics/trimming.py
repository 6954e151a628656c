"""`moldau topics trim`: partitions lose their oldest records."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.output import is_for_people, print_rows
from moldau.cli.questions import ask
from moldau.cli.records.offsets import parse_moment
from moldau.cli.topics.failures import chosen_places, existing_topic
from moldau.cli.topics.leaders import EARLIEST, LATEST, delete_records, offsets_at
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, words_of
from moldau.client.leaders import Answers
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

END = "end"
OFFSET_MAX = 2**63 - 1
POLICY = "only topics with cleanup.policy=delete can be trimmed; a compacted one loses keys by records without a value"

Offsets = Mapping[TopicPartition, int]


def trim_topic(options: Namespace) -> int:
    offset, timestamp_ms = parsed_before(options.before)
    with open_cluster(options) as cluster:
        places = chosen_places(existing_topic(cluster, options.topic), options.partition)
        starts, ends = (known_offsets(cluster, places, at) for at in (EARLIEST, LATEST))
        before = targets(cluster, ends, offset, timestamp_ms)
        lost = sum(max(0, before[place] - starts[place]) for place in places)
        if lost:
            count = f"{lost:,} record{'s' if lost > 1 else ''}"
            ask(f"delete the oldest {count} of {options.topic}, for good?", yes=options.yes)
            answers = delete_records(cluster, {place: at for place, at in before.items() if at > starts[place]})
        else:
            answers = {}
    return report(starts, answers, output=options.output)


def parsed_before(text: str) -> tuple[int | None, int | None]:
    """An offset, or a time, or none of them for the end."""
    if text == END:
        return None, None
    if text.startswith("@"):
        try:
            return None, parse_moment(text[1:], now_ms=SystemClock().now_ms())
        except ValueError as wrong:
            raise UsageError(f"--before: {wrong}") from None
    if not text.isdecimal() or not text.isascii() or int(text) > OFFSET_MAX:
        raise UsageError(f"--before: {text!r} is no offset; expected a number, @TIME such as @-1d, or end")
    return int(text), None


def targets(cluster: Cluster, ends: Offsets, offset: int | None, timestamp_ms: int | None) -> Offsets:
    """Where each partition shall begin; where no record is that young, all of them are older."""
    if timestamp_ms is not None:
        found = known_offsets(cluster, list(ends), timestamp_ms)
        return {place: end if found[place] < 0 else found[place] for place, end in ends.items()}
    if offset is None:
        return ends
    for place, end in ends.items():
        if offset > end:
            raise CommandFailed(
                f"partition {place.partition} of {place.topic!r} ends at {end}; nothing was done:"
                " choose partitions by -p, or an offset that all of them have"
            )
    return dict.fromkeys(ends, offset)


def known_offsets(cluster: Cluster, places: Sequence[TopicPartition], at: int) -> Offsets:
    found = offsets_at(cluster, places, at)
    for place in places:
        if found[place].code:
            raise CommandFailed(f"partition {place.partition} of {place.topic!r}: {words_of(found[place].code)}")
    return {place: found[place].offset for place in places}


def report(starts: Offsets, answers: Answers, *, output: str) -> int:
    """A partition that had nothing to lose begins where it began."""
    rows: list[dict[str, object]] = []
    exit_code = OK
    for place, start in starts.items():
        found = answers.get(place)
        if found is not None and found.code:
            told = POLICY if found.code == ErrorCode.POLICY_VIOLATION else words_of(found.code)
            print(f"moldau topics: partition {place.partition} of {place.topic!r}: {told}", file=sys.stderr)
            if not is_for_people(output):
                rows.append({"partition": place.partition, "error": told})
            exit_code = FAILED
        else:
            now = start if found is None else found.offset
            rows.append({"partition": place.partition, "start": now, "deleted": now - start})
    if rows or exit_code == OK:
        print_rows(rows, columns=("partition", "start", "deleted"), output=output)
    return exit_code
