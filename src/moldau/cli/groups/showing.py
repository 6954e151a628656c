"""`moldau groups list`, `describe` and `lag`: rows of groups, partitions and members."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence

from moldau.cli.failures import FAILED, OK, UsageError, meant
from moldau.cli.output import CSV, WIDE, Row, cell, is_for_people, print_rows, print_table
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import Answers
from moldau.client.groups.describing import Member
from moldau.client.groups.kinds import TYPES
from moldau.client.groups.lag import GroupLag, PartitionLag, group_lags
from moldau.client.groups.listing import Listed, list_groups
from moldau.client.groups.resetting import places_text
from moldau.core.errors import ErrorCode

STATES = (
    "Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady",
)  # fmt: skip
LIST_COLUMNS, MORE_OF_LIST = ("group", "type", "state", "members", "partitions", "lag"), ("protocol", "topics")
LAG_COLUMNS, MORE_OF_LAG = ("group", "topic", "partition", "offset", "end", "lag"), ("member", "host", "client")
PARTITION_COLUMNS = ("topic", "partition", "offset", "end", "lag", "client")
MORE_OF_PARTITIONS = ("member", "host", "leader_epoch", "metadata")
MEMBER_COLUMNS, MORE_OF_MEMBERS = ("member", "client", "host", "partitions"), ("instance", "epoch", "assignment")


def list_all(options: Namespace) -> int:
    states, types = known_words(options.state, STATES, "--state"), known_words(options.type, TYPES, "--type")
    with open_cluster(options) as cluster:
        listed = [
            each
            for each in list_groups(cluster)
            if (not states or each.state in states) and (not types or each.type in types)
        ]
        lags = group_lags(cluster, [each.group for each in listed if each.is_consumer_group])
    rows = [list_row(each, lags.get(each.group)) for each in listed]
    print_rows(rows, columns=LIST_COLUMNS, more=MORE_OF_LIST, output=options.output)
    return OK


def known_words(given: Sequence[str], known: Sequence[str], option: str) -> set[str]:
    by_word = {each.lower(): each for each in known}
    for word in given:
        if word.lower() not in by_word:
            raise UsageError(f"{option} {word!r}: expected one of {', '.join(known)}{meant(word.capitalize(), known)}")
    return {by_word[word.lower()] for word in given}


def list_row(listed: Listed, lag: GroupLag | Refused | None) -> Row:
    """Members and lag are those of consumers; other groups have neither here."""
    row: dict[str, object] = {
        "group": listed.group,
        "type": listed.type,
        "protocol": listed.protocol,
        "state": listed.state,
        "members": None,
        "partitions": None,
        "topics": None,
        "lag": None,
    }
    if isinstance(lag, GroupLag):
        row["members"], row["partitions"], row["lag"] = len(lag.group.members), len(lag.partitions), lag.total
        row["topics"] = sorted({each.place.topic for each in lag.partitions})
    return row


def describe(options: Namespace) -> int:
    with open_cluster(options) as cluster:
        answers = group_lags(cluster, options.groups)
        missing = say_refusals(cluster, answers)
    found = [each for each in answers.values() if isinstance(each, GroupLag)]
    if is_for_people(options.output):
        for index, each in enumerate(found):
            if index:
                print()
            print_group(each, is_wide=options.output == WIDE)
    elif options.output == CSV:
        print_rows(rows_of(found), columns=LAG_COLUMNS, more=MORE_OF_LAG, output=CSV)
    else:
        wrong = [{"group": group, "error": told} for group, told in missing.items()]
        print_rows([*map(description, found), *wrong], columns=(), output=options.output)
    return FAILED if missing else OK


def show_lag(options: Namespace) -> int:
    with open_cluster(options) as cluster:
        groups = options.groups or [each.group for each in list_groups(cluster) if each.is_consumer_group]
        answers = group_lags(cluster, groups)
        missing = say_refusals(cluster, answers)
    found = [each for each in answers.values() if isinstance(each, GroupLag)]
    rows = [row for row in rows_of(found) if not options.topic or row["topic"] in options.topic]
    print_rows(rows, columns=LAG_COLUMNS, more=MORE_OF_LAG, output=options.output)
    if is_for_people(options.output):
        known = [lag for lag in (row["lag"] for row in rows) if isinstance(lag, int)]
        groups_there = len({row["group"] for row in rows})
        print(f"\n{sum(known)} behind in {counted(len(rows), 'partition')} of {counted(groups_there, 'group')}")
    return FAILED if missing else OK


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def say_refusals(cluster: Cluster, answers: Answers[GroupLag]) -> dict[str, str]:
    """What was said, by group."""
    refused = {group: each for group, each in answers.items() if isinstance(each, Refused)}
    names = [each.group for each in list_groups(cluster)] if refused else []
    told = {group: refusal(group, wrong, names) for group, wrong in refused.items()}
    for each in told.values():
        print(f"moldau groups: {each}", file=sys.stderr)
    return told


def refusal(group: str, wrong: Refused, known: Iterable[str]) -> str:
    if wrong.code == ErrorCode.GROUP_ID_NOT_FOUND and group not in known:
        return f"group {group!r} does not exist{meant(group, known) or '; see: moldau groups list'}"
    return f"group {group!r}: {wrong}"


def rows_of(groups: Iterable[GroupLag]) -> list[dict[str, object]]:
    return [{"group": each.group.id, **partition_row(part)} for each in groups for part in each.partitions]


def partition_row(lag: PartitionLag) -> dict[str, object]:
    member, committed = lag.member, lag.committed
    return {
        "topic": lag.place.topic,
        "partition": lag.place.partition,
        "offset": lag.offset,
        "end": lag.end,
        "lag": lag.lag,
        "member": member.id if member else None,
        "host": member.host if member else None,
        "client": member.client_id if member else None,
        "leader_epoch": committed.leader_epoch if committed else None,
        "metadata": committed.metadata if committed else None,
    }


def member_row(member: Member) -> dict[str, object]:
    return {
        "member": member.id,
        "client": member.client_id,
        "host": member.host,
        "partitions": len(member.assignment),
        "instance": member.instance_id,
        "epoch": member.epoch,
        "assignment": places_text(member.assignment),
    }


def description(found: GroupLag) -> Mapping[str, object]:
    group = found.group
    return {
        "group": group.id,
        "type": group.type,
        "protocol": group.protocol,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.id,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "lag": found.total,
        "partitions": [partition_row(each) for each in found.partitions],
        "members": [member_row(each) for each in group.members],
    }


def print_group(found: GroupLag, *, is_wide: bool) -> None:
    group = found.group
    node = group.coordinator
    assignor = f", assigned by {cell(group.assignor)}" if group.assignor else ""
    print(f"group        {cell(group.id)}")
    print(f"type         {group.type}")
    print(f"state        {group.state}, {counted(len(group.members), 'member')}{assignor}")
    print(f"coordinator  {node.id} ({node.host}:{node.port})")
    print(f"lag          {cell(found.total)}")
    if found.partitions:
        names = [*PARTITION_COLUMNS, *(MORE_OF_PARTITIONS if is_wide else ())]
        print_part([partition_row(each) for each in found.partitions], names)
    if group.members:
        names = [*MEMBER_COLUMNS, *(MORE_OF_MEMBERS if is_wide else ())]
        print_part([member_row(each) for each in group.members], names)


def print_part(rows: Sequence[Row], names: Sequence[str]) -> None:
    print()
    print_table([[cell(row[name]) for name in names] for row in rows], header=[each.upper() for each in names])
