"""--reset-offsets: what it would do, or does, as a table or as CSV."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.kafka.consumer_groups.listing import named_groups
from moldau.cli.kafka.consumer_groups.printing import print_columns, print_error, widest
from moldau.cli.kafka.exceptions import thrown
from moldau.cli.kafka.reset_rules import rule_of, text_of
from moldau.cli.kafka.scopes import split_scopes
from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import Answers, only
from moldau.client.groups.committed import commit_offsets, committed_offsets
from moldau.client.groups.describing import Group, describe_groups
from moldau.client.groups.kinds import STREAMS
from moldau.client.groups.listing import list_groups
from moldau.client.groups.planning import NoSuchPlaces, new_offsets, one_rule
from moldau.client.groups.resetting import (
    NewOffset,
    NothingCommitted,
    Plans,
    Rule,
    Surprise,
    Target,
    places_text,
    read_plans,
)
from moldau.client.offsets import partitions_of
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

NO_EXECUTION = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require"
    " either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are"
    " scripting this command and want to keep the current default behavior without prompting."
)
QUOTED_FROM = 25  # characters: Apache Kafka's tool quotes what is longer without a look at it
UNQUOTED_LEAST = "-"  # the first character that needs no quotes
Offsets = Mapping[TopicPartition, NewOffset]


class Stopped(Exception):
    """What Apache Kafka's tool says when it can't go on, after what it has said and done."""


def reset(cluster: Cluster, options: Namespace) -> int:
    if not (options.dry_run or options.execute):
        print(NO_EXECUTION, file=sys.stderr)
    rule, plans = rule_of(options, now_ms=SystemClock().now_ms()), plans_of(options)
    groups = named_groups(cluster, options)
    described = describe_groups(cluster, groups)
    streams = streams_among(cluster, described)
    results: dict[str, Offsets] = {}
    is_refused = False
    try:
        for group in groups:
            refusal = why_not(group, described[group], streams)
            if refusal:
                print_error(refusal)
                is_refused, results[group] = True, {}
            else:
                rules = rules_of(cluster, options, group, rule, plans)
                results[group] = reset_one(cluster, options, group, rules)
    except NothingCommitted as wrong:
        raise CommandFailed(str(wrong)) from None
    except Stopped as wrong:
        print_error(f"Executing consumer group command failed due to {wrong}")
        return FAILED
    if options.export:
        print_csv(results, is_one=len(options.group) == 1)
    else:
        print_table(results)
    return FAILED if is_refused else OK


def plans_of(options: Namespace) -> Plans:
    if options.from_file is None:
        return {}
    try:
        return read_plans(text_of(options.from_file), group=options.group[0] if len(options.group) == 1 else None)
    except ValueError as wrong:
        raise UsageError(f"{options.from_file}: {wrong}") from None


def streams_among(cluster: Cluster, described: Answers[Group]) -> set[str]:
    """Groups of a kind that can't be described here are told from those that don't exist."""
    if not any(isinstance(each, Refused) for each in described.values()):
        return set()
    return {each.group for each in list_groups(cluster) if each.type == STREAMS}


def why_not(group: str, description: Group | Refused, streams: set[str]) -> str | None:
    if group in streams:
        return f"Group '{group}' is a streams group. Use kafka-streams-groups.sh to reset its offsets."
    if isinstance(description, Refused):
        if description.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise Stopped(f"java.util.concurrent.ExecutionException: {thrown(description.code, str(description))}")
        return None
    if description.is_active:
        return (
            f"Assignments can only be reset if the group '{group}' is inactive,"
            f" but the current state is {description.state}."
        )
    return None


def rules_of(
    cluster: Cluster, options: Namespace, group: str, rule: Rule | None, plans: Plans
) -> Mapping[TopicPartition, Rule]:
    if rule is None:
        if group not in plans:
            print_error(f"No reset plan for group {group} found.")
        return {place: Rule(Target.OFFSET, offset) for place, offset in plans.get(group, {}).items()}
    if options.all_topics:
        committed = only(committed_offsets(cluster, [group]))
        return one_rule(rule, committed)
    places, topics = split_scopes(options.topic)
    more, missing = partitions_of(cluster, topics)
    if missing:
        raise Stopped(str(Refused(min(missing.values()))))
    return one_rule(rule, dict.fromkeys([*places, *more]))


def reset_one(cluster: Cluster, options: Namespace, group: str, rules: Mapping[TopicPartition, Rule]) -> Offsets:
    try:
        offsets = new_offsets(cluster, group, rules)
    except NoSuchPlaces as wrong:
        raise Stopped(absent(wrong.codes)) from None
    for place, each in offsets.items():
        tell(place, each)
    if options.execute and offsets:
        codes = commit_offsets(cluster, group, {place: each.offset for place, each in offsets.items()})
        failed = next((code for code in codes.values() if code != ErrorCode.NONE), None)
        if failed is not None:
            raise Stopped(str(Refused(failed)))
    return offsets


def absent(codes: Mapping[TopicPartition, int]) -> str:
    """One sentence for the partitions that are not there, or else for those without a leader."""
    unknown = [place for place, code in codes.items() if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    unled = [place for place, code in codes.items() if code == ErrorCode.LEADER_NOT_AVAILABLE]
    if unknown or unled:
        what = "do not exist" if unknown else "have no leader"
        return f'The partitions "{",".join(map(str, unknown or unled))}" {what}'
    return f"{places_text(codes)}: {Refused(min(codes.values()))}"


def tell(place: TopicPartition, new: NewOffset) -> None:
    if new.surprise is Surprise.NONE_SO_LATE:
        print(
            f"\nWarn: Partition {place.partition} from topic {place.topic} is empty."
            " Falling back to latest known offset."
        )
    elif new.surprise is not None:
        compared = "higher than latest" if new.surprise is Surprise.ABOVE_END else "lower than earliest"
        print(
            f"WARN New offset ({new.asked}) is {compared} offset for topic partition {place}."
            f" Value will be set to {new.offset}.",
            file=sys.stderr,
        )


def print_table(results: Mapping[str, Offsets]) -> None:
    rows = [
        (group, place.topic, str(place.partition), str(new.offset))
        for group, offsets in results.items()
        for place, new in offsets.items()
    ]
    header = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if results else []
    widths = (widest(15, results), widest(15, (row[1] for row in rows)), 10, 0)
    print_columns([*header, *rows], widths)


def print_csv(results: Mapping[str, Offsets], *, is_one: bool) -> None:
    for group, offsets in results.items():
        for place, new in offsets.items():
            owner = [] if is_one else [quoted(group)]
            print(",".join([*owner, quoted(place.topic), str(place.partition), str(new.offset)]))
    print()


def quoted(text: str) -> str:
    if len(text) < QUOTED_FROM and all(each >= UNQUOTED_LEAST for each in text):
        return text
    return '"' + text.replace('"', '""') + '"'
