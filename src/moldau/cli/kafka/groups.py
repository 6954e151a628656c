"""`moldau groups --list`: groups of every kind, as kafka-groups.sh lists them."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import OK
from moldau.cli.output import is_for_people, print_rows
from moldau.cli.wire import open_cluster
from moldau.client.groups.kinds import CONSUMER, SHARE, STREAMS
from moldau.client.groups.listing import Listed, list_groups

LEAST_WIDTH = 20


def run(options: Namespace) -> int:
    with open_cluster(options) as cluster:
        found = [each for each in list_groups(cluster) if is_wanted(each, options)]
    rows = [{"group": each.group, "type": each.type, "protocol": each.protocol} for each in found]
    if is_for_people(options.output):
        print_groups([tuple(row.values()) for row in rows])
    else:
        print_rows(rows, columns=("group", "type", "protocol"), output=options.output)
    return OK


def is_wanted(each: Listed, options: Namespace) -> bool:
    if options.group_type is not None and each.type.lower() != options.group_type:
        return False
    if options.protocol is not None and each.protocol != options.protocol:
        return False
    if options.consumer:
        return each.is_consumer_group or each.type == CONSUMER
    return not (options.share and each.type != SHARE) and not (options.streams and each.type != STREAMS)


def print_groups(rows: list[tuple[str, ...]]) -> None:
    lines = [("GROUP", "TYPE", "PROTOCOL"), *rows]
    width = max([LEAST_WIDTH, *(len(text) for row in rows for text in row)])
    for index, line in enumerate(lines):
        # Apache Kafka ends its rows with a space, and its header without.
        print(" ".join(f"{text:<{width}}" for text in line) + " " * (index > 0))
