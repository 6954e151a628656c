"""`moldau groups --list` beside Apache Kafka's GroupsCommand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from moldau.client.cluster import Cluster, CoordinatorKind
from moldau.client.groups.committed import commit_offsets
from moldau.core.ids import TopicPartition
from moldau.wire.messages import JoinGroupRequest, JoinGroupResponse
from moldau.wire.messages.join_group import JoinGroupRequestProtocol
from tests.suites.conftest import NewTopic
from tests.suites.own_tools import OwnTools
from tests.suites.tools import Tools

GROUPS_COMMAND = "org.apache.kafka.tools.GroupsCommand"
SESSION_MS = 30_000


@pytest.fixture
def groups(bootstrap: str, new_topic: NewTopic) -> Iterator[tuple[str, str]]:
    """One that only commits, and one of Kafka Connect's protocol whose member joins."""
    mark = uuid.uuid4().hex[:8]
    commits, connects = f"commits-{mark}", f"connects-{mark}-of-a-name-that-is-wide"
    with Cluster(bootstrap, client_id="worker", timeout_s=30.0) as cluster:
        commit_offsets(cluster, commits, {TopicPartition(new_topic(), 0): 0})
        join = JoinGroupRequest(
            group_id=connects,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="connect",
            protocols=[JoinGroupRequestProtocol("default", b"")],
        )
        asked = cluster.ask_coordinator(
            CoordinatorKind.GROUP, connects, join, JoinGroupResponse, codes=lambda found: [found.error_code]
        )
        join.member_id = asked.member_id
        cluster.ask_coordinator(
            CoordinatorKind.GROUP, connects, join, JoinGroupResponse, codes=lambda found: [found.error_code]
        )
        yield commits, connects


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ("--list", "commits connects"),
        ("--list --consumer", "commits"),
        ("--list --share", ""),
        ("--list --streams", ""),
        ("--list --group-type classic", "commits connects"),
        ("--list --group-type Classic --protocol connect", "connects"),
        ("--list --protocol consumer", ""),
    ],
)
def test_both_list_the_same(tools: Tools, bootstrap: str, groups: tuple[str, str], options: str, listed: str) -> None:
    theirs = tools.run(GROUPS_COMMAND, *options.split())
    ours = OwnTools(bootstrap).run("groups", *options.split())
    assert (ours.exit_code, ours.out.splitlines()[0]) == (theirs.exit_code, theirs.out.splitlines()[0])
    assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines())
    found = sorted(row[0] for row in ours.table if row[0] in groups)
    assert [each.partition("-")[0] for each in found] == listed.split()


def test_both_describe_no_group_of_another_protocol(tools: Tools, bootstrap: str, groups: tuple[str, str]) -> None:
    theirs, ours = (each.groups("--describe", "--group", groups[1]) for each in (tools, OwnTools(bootstrap)))
    assert (ours.exit_code, ours.out, ours.err) == (1, theirs.out, "")
