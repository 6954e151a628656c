"""Names that only the cluster knows: asked for with little patience, and kept for the next Tab."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from moldau.cli.completion.kept import keep, kept
from moldau.cli.completion.kinds import Kind
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.client.cluster import Cluster

ANSWER_S = 1.0  # whoever pressed Tab waits
KEPT_MS = 5_000  # a second Tab, and a third
CONNECTION = ("bootstrap_server", "profile", "command_config", "properties")


class _TimeUp(Exception):
    """Everything that was to be asked takes too long."""


def names_of(kind: Kind, given: Mapping[str, list[str]]) -> list[str]:
    """Nothing where nobody answers, which is kept as well."""
    topic = (
        [each for name in ("topic", "topics") for each in given.get(name, [])][-1:] if kind == Kind.PARTITIONS else []
    )
    variables = {name: value for name, value in os.environ.items() if name.startswith("MOLDAU_")}
    key = [kind, topic, {name: given.get(name, []) for name in CONNECTION}, variables, os.getcwd()]
    since_ns = (SystemClock().now_ms() - KEPT_MS) * 1_000_000
    found = kept("names", key, newer_than_ns=since_ns)
    if found is None:
        found = _asked(kind, given, topic)
        keep("names", key, found)
    return [str(each) for each in found]


def _asked(kind: Kind, given: Mapping[str, list[str]], topic: list[str]) -> list[str]:
    try:
        with _within(ANSWER_S):
            from moldau.cli.wire import open_cluster

            with open_cluster(_options(given)) as cluster:
                return sorted(_ASKING[kind](cluster, topic))
    except Exception:  # nobody listens, no right, a wrong property: nothing of it belongs into a prompt
        return []


def _options(given: Mapping[str, list[str]]) -> Namespace:
    last: dict[str, Any] = {name: next(iter(given.get(name, [])[-1:]), None) for name in CONNECTION}
    return Namespace(**{**last, "properties": given.get("properties", []), "timeout": ANSWER_S})


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """All of it together, whatever it waits for: a name server, a handshake, a broker."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _topics(cluster: Cluster, _topic: list[str]) -> list[str]:
    return [each.name or "" for each in cluster.metadata().topics]


def _partitions(cluster: Cluster, topic: list[str]) -> list[str]:
    return [str(part.partition_index) for each in cluster.metadata(topic).topics for part in each.partitions]


def _groups(cluster: Cluster, _topic: list[str]) -> list[str]:
    from moldau.client.groups.listing import list_groups

    return [each.group for each in list_groups(cluster)]


def _brokers(cluster: Cluster, _topic: list[str]) -> list[str]:
    return [str(each) for each in cluster.nodes()]


def _users(cluster: Cluster, _topic: list[str]) -> list[str]:
    from moldau.wire.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse

    answer = cluster.ask(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
    return [each.user for each in answer.results]


def _principals(cluster: Cluster, topic: list[str]) -> list[str]:
    return [f"User:{each}" for each in _users(cluster, topic)]


def _transactional_ids(cluster: Cluster, _topic: list[str]) -> list[str]:
    from moldau.cli.kafka.transactions.asking import listed
    from moldau.wire.messages import ListTransactionsRequest

    return [each.transactional_id for _, each in listed(cluster, ListTransactionsRequest())]


_ASKING: Mapping[Kind, Callable[[Cluster, list[str]], list[str]]] = {
    Kind.TOPICS: _topics,
    Kind.PARTITIONS: _partitions,
    Kind.GROUPS: _groups,
    Kind.BROKERS: _brokers,
    Kind.USERS: _users,
    Kind.PRINCIPALS: _principals,
    Kind.TRANSACTIONAL_IDS: _transactional_ids,
}
