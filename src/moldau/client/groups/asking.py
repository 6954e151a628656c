"""Asking about many groups at once: each broker about those that it coordinates, again while coordinators move."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from moldau.client.cluster import PASSING, PAUSE_S, Cluster, CoordinatorKind, Refused
from moldau.core.errors import ErrorCode

GROUPS_AT_ONCE = 500  # keeps an answer about groups of thousands of partitions below what a connection takes
T = TypeVar("T")
Answers: TypeAlias = dict[str, T | Refused]
"""What is known of each group, or why not."""
Ask: TypeAlias = Callable[[int, list[str]], Mapping[str, T | Refused]]


def ask_coordinators(cluster: Cluster, groups: Iterable[str], ask: Ask[T]) -> Answers[T]:
    """`ask` is called with a broker's id and the groups that it coordinates; what passes by itself is waited for."""
    wanted = list(dict.fromkeys(groups))
    found: Answers[T] = {}
    deadline_s = time.monotonic() + cluster.timeout_s
    left = wanted
    while left:
        coordinated, refused = cluster.coordinators(CoordinatorKind.GROUP, left)
        found.update({group: Refused(code) for group, code in refused.items()})
        for broker_id, ids in coordinated.items():
            for at in range(0, len(ids), GROUPS_AT_ONCE):
                some = ids[at : at + GROUPS_AT_ONCE]
                answers = ask(broker_id, some)
                found.update({group: answers.get(group, untold()) for group in some})
        left = [group for group in left if passes(found[group])]
        if not left or time.monotonic() >= deadline_s:
            break
        time.sleep(PAUSE_S)
    return {group: found[group] for group in wanted}


def untold() -> Refused:
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "its coordinator answered nothing about it")


def passes(answer: object) -> bool:
    return isinstance(answer, Refused) and answer.code in PASSING


def only(answers: Answers[T]) -> T:
    """The answer about the one group that was asked about. Raises Refused."""
    (answer,) = answers.values()
    if isinstance(answer, Refused):
        raise answer
    return answer
