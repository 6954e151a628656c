"""--describe: offsets and lag, members, or states of groups."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TypeVar

from moldau.cli.failures import FAILED, OK
from moldau.cli.kafka.consumer_groups.listing import named_groups
from moldau.cli.kafka.consumer_groups.printing import MISSING, print_columns, print_error, print_warning, shown, widest
from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import Answers
from moldau.client.groups.describing import DEAD, EMPTY, Group, Member, describe_groups
from moldau.client.groups.kinds import CONSUMER_PROTOCOLS
from moldau.client.groups.lag import GroupLag, PartitionLag, group_lags
from moldau.client.groups.resetting import places_text

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
OFFSETS = ("GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
MEMBER = ("CONSUMER-ID", "HOST", "CLIENT-ID")
EPOCH_COLUMN = 3
T = TypeVar("T", Group, GroupLag)
ASSIGNMENTS = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")


class NoConsumerGroup(Exception):
    """A group of Kafka Connect's workers, for one. In the words of Java's client."""

    def __init__(self, group: Group) -> None:
        kind = "java.lang.IllegalArgumentException"
        super().__init__(f"{kind}: GroupId {group.id} is not a consumer group ({group.protocol}).")


def describe(cluster: Cluster, options: Namespace) -> int:
    groups = named_groups(cluster, options)
    if options.members or options.state is not None:
        described = all_of(describe_groups(cluster, groups))
        shows = [
            print_members(each, verbose=options.verbose)
            if options.members
            else print_state(each, verbose=options.verbose)
            for each in described
        ]
    else:
        shows = [print_offsets(each, verbose=options.verbose) for each in all_of(group_lags(cluster, groups))]
    return OK if all(shows) else FAILED


def all_of(answers: Answers[T]) -> list[T]:
    """Raises Refused or NoConsumerGroup if any can't be described: Apache Kafka's tool describes none then."""
    found = []
    for each in answers.values():
        if isinstance(each, Refused):
            raise each
        group = each.group if isinstance(each, GroupLag) else each
        if group.protocol not in CONSUMER_PROTOCOLS:
            raise NoConsumerGroup(group)
        found.append(each)
    return found


def is_there(group: Group) -> bool:
    """Says what is special about the state."""
    if group.state == DEAD:
        print_error(f"Consumer group '{group.id}' does not exist.")
    elif group.state == EMPTY:
        print_warning(f"Consumer group '{group.id}' has no active members.")
    elif group.state in REBALANCING:
        print_warning(f"Warning: Consumer group '{group.id}' is rebalancing.")
    return group.state != DEAD


def print_offsets(lags: GroupLag, *, verbose: bool) -> bool:
    if not is_there(lags.group):
        return False
    if lags.partitions:
        rows = [offset_row(lags.group.id, each) for each in lags.partitions]
        lines = [[*OFFSETS, *MEMBER], *rows]
        least = (15, 15, 10, 15, 15, 15, 15, 15, 15, 0)
        # The cells of these columns set their widths; the others keep theirs, and run over.
        grow = (0, 1, 7, 8)
        widths = [widest(width, (row[at] for row in rows)) if at in grow else width for at, width in enumerate(least)]
        kept = [at for at in range(len(least)) if verbose or at != EPOCH_COLUMN]
        print_columns([[line[at] for at in kept] for line in lines], [widths[at] for at in kept])
    return True


def offset_row(group: str, lag: PartitionLag) -> list[str]:
    member = [lag.member.id, lag.member.host, lag.member.client_id] if lag.member else [MISSING] * len(MEMBER)
    epoch = lag.committed.leader_epoch if lag.committed else None
    offsets = [shown(each) for each in (epoch, lag.offset, lag.end, lag.lag)]
    return [group, lag.place.topic, str(lag.place.partition), *offsets, *member]


def print_members(group: Group, *, verbose: bool) -> bool:
    if not is_there(group):
        return False
    members = group.members
    has_instances = any(each.instance_id for each in members)
    is_mixed = verbose and {each.is_upgraded for each in members} >= {True, False}
    header = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if has_instances else []), "HOST", "CLIENT-ID"]
    header += ["#PARTITIONS", *(ASSIGNMENTS if verbose else ()), *(["UPGRADED"] if is_mixed else [])]
    rows = [
        member_row(group, each, has_instances=has_instances, verbose=verbose, is_mixed=is_mixed) for each in members
    ]
    least = [15, 15, *([17] if has_instances else []), 15, 15, 15, *([15, 20, 15, 20] if verbose else [])]
    fixed = {header.index(name) for name in ("#PARTITIONS", "CURRENT-EPOCH", "TARGET-EPOCH") if name in header}
    widths = [width if at in fixed else widest(width, (row[at] for row in rows)) for at, width in enumerate(least)] + [
        0
    ] * is_mixed
    print()
    for line in [header, *rows]:
        print(" ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)) + " " * (not verbose))
    return True


def member_row(group: Group, member: Member, *, has_instances: bool, verbose: bool, is_mixed: bool) -> Sequence[str]:
    row = [group.id, member.id, *([member.instance_id or ""] if has_instances else []), member.host, member.client_id]
    row.append(str(len(member.assignment)))
    if verbose:
        row += [shown(member.epoch), places_text(member.assignment) or MISSING]
        row += [shown(group.target_epoch), places_text(member.target) or MISSING]
    if is_mixed:
        row.append(MISSING if member.is_upgraded is None else str(member.is_upgraded).lower())
    return row


def print_state(group: Group, *, verbose: bool) -> bool:
    if not is_there(group):
        return False
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.id})"
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row = [group.id, coordinator, group.assignor or MISSING, group.state]
    widths = [widest(15, [group.id]), widest(25, [coordinator]), 20, 20]
    if verbose:
        header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [shown(group.epoch), shown(group.target_epoch)]
        widths += [15, 25]
    print_columns([[*header, "#MEMBERS"], [*row, str(len(group.members))]], [*widths, 0])
    return True
