"""Consumer groups by their names, and what all or some of them are: the actions behind --list and --all-groups."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import OK
from moldau.client.cluster import Cluster
from moldau.client.groups.listing import Listed, list_groups

NAME_WIDTH, MARGIN = 15, 10
UNKNOWN = "Unknown"


def list_consumer_groups(cluster: Cluster, options: Namespace) -> int:
    found = [
        each
        for each in list_groups(cluster)
        if each.is_consumer_group
        and (not options.types or each.type in options.types)
        and (not options.states or each.state in options.states)
    ]
    if options.state is None and options.type is None:
        for each in found:
            print(each.group)
    else:
        print_groups(found, types=options.type is not None, states=options.state is not None)
    return OK


def print_groups(groups: list[Listed], *, types: bool, states: bool) -> None:
    width = max([NAME_WIDTH, *(len(each.group) for each in groups)]) + MARGIN
    lines = [
        ("GROUP", "TYPE", "STATE"),
        *((each.group, each.type or UNKNOWN, each.state or UNKNOWN) for each in groups),
    ]
    for name, kind, state in lines:
        print(f"{name:<{width}}" + f" {kind:<20}" * types + f" {state:<20}" * states)


def named_groups(cluster: Cluster, options: Namespace) -> list[str]:
    """Those that the options name, each once, in order."""
    if options.all_groups:
        return [each.group for each in list_groups(cluster) if each.is_consumer_group]
    return sorted(set(options.group))
