"""`moldau groups reset`, `delete` and `delete-offsets`: shown first, asked about, and done for groups at rest."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping

from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.groups.rules import note, parse_rule
from moldau.cli.groups.showing import counted, refusal
from moldau.cli.kafka.scopes import split_scopes
from moldau.cli.output import Change, is_for_people, print_changes, print_rows
from moldau.cli.questions import ask
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, Refused, check, words_of
from moldau.client.groups.asking import only
from moldau.client.groups.committed import (
    Offsets,
    commit_offsets,
    committed_offsets,
    delete_groups,
    delete_offsets,
)
from moldau.client.groups.describing import DEAD, Group, describe_groups
from moldau.client.groups.listing import list_groups
from moldau.client.groups.planning import NoSuchPlaces, new_offsets, one_rule
from moldau.client.groups.resetting import NewOffset, NothingCommitted, Rule, places_text
from moldau.client.offsets import partitions_of
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

COLUMNS = ("topic", "partition", "current", "new", "change")
CLIENTS_SHOWN = 3
Plan = Mapping[TopicPartition, NewOffset]


def reset(options: Namespace) -> int:
    if bool(options.topic) == options.all_topics:
        raise UsageError("which topics? Give --topic TOPIC, TOPIC:0,1 for some partitions, or --all-topics")
    for_people = is_for_people(options.output)
    if not (for_people or options.yes or options.dry_run):
        raise UsageError(f"-o {options.output} asks nothing; add --yes, or --dry-run to see what would be")
    try:
        rule = parse_rule(options.to, now_ms=SystemClock().now_ms())
    except ValueError as wrong:
        raise UsageError(f"--to: {wrong}") from None
    with open_cluster(options) as cluster:
        exists = check_at_rest(cluster, options.group)
        committed = only(committed_offsets(cluster, [options.group]))
        plan = planned(cluster, options.group, one_rule(rule, places_of(cluster, options, committed)))
        if for_people:
            print_plan(options, plan, committed, is_done=False)
        if not options.dry_run:
            if not options.yes:
                new = "" if exists else ", which does not exist yet,"
                ask(f"reset {counted(len(plan), 'partition')} of group {options.group}{new} to this?", yes=False)
            apply(cluster, options.group, plan)
    if not for_people:
        print_plan(options, plan, committed, is_done=not options.dry_run)
    elif not options.dry_run:
        print(f"reset {counted(len(plan), 'partition')} of group {options.group}")
    return OK


def check_at_rest(cluster: Cluster, group: str) -> bool:
    """Whether there is such a group. An active one would go on from where its members are, and commit that."""
    described = describe_groups(cluster, [group])[group]
    if isinstance(described, Refused):
        if described.code != ErrorCode.GROUP_ID_NOT_FOUND or group in (each.group for each in list_groups(cluster)):
            raise CommandFailed(f"group {group!r}: {described}")
        return False
    if described.is_active:
        raise CommandFailed(f"group {group!r} is {described.state} with {who(described)}; stop its members first")
    return described.state != DEAD


def who(group: Group) -> str:
    clients = list(dict.fromkeys(f"{each.client_id} at {each.host.removeprefix('/')}" for each in group.members))
    more = f" and {len(clients) - CLIENTS_SHOWN} more" if len(clients) > CLIENTS_SHOWN else ""
    return f"{counted(len(group.members), 'member')} ({', '.join(clients[:CLIENTS_SHOWN])}{more})"


def places_of(cluster: Cluster, options: Namespace, committed: Offsets) -> Iterable[TopicPartition]:
    if options.all_topics:
        if not committed:
            raise CommandFailed(f"group {options.group!r} has committed nothing; name topics with --topic")
        return committed
    return named_places(cluster, options.topic)


def named_places(cluster: Cluster, scopes: Iterable[str]) -> list[TopicPartition]:
    places, topics = split_scopes(scopes)
    more, missing = partitions_of(cluster, topics)
    for topic, code in missing.items():
        unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise CommandFailed(f"topic {topic!r}{' does not exist' if unknown else f': {words_of(code)}'}")
    return [*dict.fromkeys([*places, *more])]


def planned(cluster: Cluster, group: str, rules: Mapping[TopicPartition, Rule]) -> Plan:
    try:
        return new_offsets(cluster, group, rules)
    except NothingCommitted as wrong:
        raise CommandFailed(
            f"group {group!r} has committed nothing for {wrong.place}, so there is nothing to count from;"
            " use --to earliest, latest or an offset"
        ) from None
    except NoSuchPlaces as wrong:
        place, code = next(iter(wrong.codes.items()))
        unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise CommandFailed(f"partition {place}{' does not exist' if unknown else f': {words_of(code)}'}") from None


def print_plan(options: Namespace, plan: Plan, committed: Offsets, *, is_done: bool) -> None:
    rows = []
    for place, new in plan.items():
        current = committed[place].offset if place in committed else None
        row = {
            "group": options.group,
            "topic": place.topic,
            "partition": place.partition,
            "current": current,
            "new": new.offset,
            "change": None if current is None else new.offset - current,
            "note": note(new),
            "done": is_done,
        }
        rows.append(row)
    has_notes = any(row["note"] for row in rows)
    print_rows(rows, columns=[*COLUMNS, *(["note"] if has_notes else [])], output=options.output)


def apply(cluster: Cluster, group: str, plan: Plan) -> None:
    codes = commit_offsets(cluster, group, {place: new.offset for place, new in plan.items()})
    for place, code in codes.items():
        if code != ErrorCode.NONE:
            check(code, f"{place}: {words_of(code)}")


def delete(options: Namespace) -> int:
    groups = list(dict.fromkeys(options.groups))
    many = "s" if len(groups) > 1 else ""
    ask(f"delete group{many} {', '.join(groups)} and what {'they' if many else 'it'} committed?", yes=options.yes)
    with open_cluster(options) as cluster:
        answers = delete_groups(cluster, groups)
        failed = {group: wrong for group, wrong in answers.items() if wrong is not None}
        names = [each.group for each in list_groups(cluster)] if failed else []
    changes = [
        Change({"group": group, "done": "deleted"}, f"deleted {group}") for group in answers if group not in failed
    ]
    for group, wrong in failed.items():
        active = wrong.code == ErrorCode.NON_EMPTY_GROUP
        told = f"group {group!r} has members; stop them first" if active else refusal(group, wrong, names)
        changes.append(Change({"group": group, "error": told}))
        print(f"moldau groups: {told}", file=sys.stderr)
    print_changes(changes, output=options.output)
    return FAILED if failed else OK


def delete_offsets_of(options: Namespace) -> int:
    with open_cluster(options) as cluster:
        committed = only(committed_offsets(cluster, [options.group]))
        places = [each for each in named_places(cluster, options.topic) if each in committed]
        if not places:
            scopes = " ".join(options.topic)
            raise CommandFailed(f"group {options.group!r} has committed nothing for {scopes}")
        ask(f"delete what group {options.group} committed for {places_text(places)}?", yes=options.yes)
        codes = delete_offsets(cluster, options.group, places)
    refused = {place: code for place, code in codes.items() if code != ErrorCode.NONE}
    changes = []
    for place in sorted(codes.keys() - refused.keys()):
        offset = committed[place].offset
        changes.append(
            Change({**place._asdict(), "offset": offset, "done": "deleted"}, f"deleted offset {offset} of {place}")
        )
    for place, code in refused.items():
        subscribed = code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        told = "the group has members that read this topic; stop them first" if subscribed else words_of(code)
        changes.append(Change({**place._asdict(), "error": told}))
        print(f"moldau groups: {place}: {told}", file=sys.stderr)
    print_changes(changes, output=options.output)
    return FAILED if refused else OK
