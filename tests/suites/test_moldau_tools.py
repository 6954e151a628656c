"""Our tools print of a cluster, be it of our brokers or of Apache Kafka's, what Apache Kafka's tools print of theirs.

The transcripts are those that hold our brokers to Apache Kafka's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.clusters import running_cluster
from tests.security.token_brokers import running_with_tokens
from tests.suites import token_commands, transaction_commands
from tests.suites.cluster_commands import PROPERTIES, transcript
from tests.suites.conftest import NewTopic
from tests.suites.moldau_tools import OurTools, plainly
from tests.suites.test_acl_command import PROPERTIES as ACL_PROPERTIES
from tests.suites.tools import (
    ACLS,
    API_VERSIONS,
    CLUSTER,
    FEATURES,
    LOG_DIRS,
    REASSIGNMENT,
    TRANSCRIPTS,
    Tools,
)

LONG = [pytest.mark.long]


SAME = [
    (API_VERSIONS, ""),
    (CLUSTER, "cluster-id"),
    (CLUSTER, "list-endpoints"),
    (REASSIGNMENT, "--list"),
    (FEATURES, "describe"),
    (FEATURES, "version-mapping"),
    *((FEATURES, f"version-mapping --release-version {each}") for each in ("3.3-IV3", "3.9", "4.0.1", "4.2-IV0")),
    *(
        (FEATURES, f"feature-dependencies --feature {each}=1 --feature metadata.version=25")
        for each in ("eligible.leader.replicas.version", "share.version", "transaction.version")
    ),
]


@pytest.mark.parametrize(("tool", "words"), SAME)
def test_a_tool_prints_the_same(tools: Tools, tool: str, words: str) -> None:
    """To the byte, of the broker of this run."""
    apaches = tools.run(tool, *words.split(), is_address_last=tool == CLUSTER)
    ours = Tools(OurTools(), tools.bootstrap).run(tool, *words.split(), is_address_last=tool == CLUSTER)
    assert (ours.exit_code, ours.out) == (apaches.exit_code, apaches.out)


def test_log_directories_of_a_topic(tools: Tools, new_topic: NewTopic) -> None:
    """Of one partition: several come in the order of Apache Kafka's hash maps, and others' come and go meanwhile."""
    words = ("--describe", "--topic-list", new_topic())
    apaches = tools.run(LOG_DIRS, *words)
    ours = Tools(OurTools(), tools.bootstrap).run(LOG_DIRS, *words)
    assert (ours.exit_code, ours.out) == (apaches.exit_code, apaches.out)


@pytest.mark.parametrize(
    "chapter",
    ["members", "brokers-go", pytest.param("moves", marks=LONG), pytest.param("unclean", marks=LONG)],
)
def test_tools_for_clusters(broker_kind: str, tool_process: LineProcess, chapter: str, tmp_path: Path) -> None:
    with running_cluster(broker_kind.partition("*")[0], properties=PROPERTIES) as cluster:
        told = list(transcript(cluster, OurTools(tool_process), chapter, scratch=tmp_path))
    expected = (TRANSCRIPTS / f"cluster-{chapter}.txt").read_text().splitlines()
    assert plainly(told) == plainly(expected)


def test_transactions(broker_kind: str) -> None:
    with running_broker(broker_kind, properties=transaction_commands.PROPERTIES) as bootstrap:
        told = transaction_commands.transcript(Tools(OurTools(), bootstrap))
    assert plainly(told.splitlines()) == plainly((TRANSCRIPTS / "transactions.txt").read_text().splitlines())


def test_delegation_tokens(broker_kind: str) -> None:
    with running_with_tokens(broker_kind.partition("*")[0]) as addresses:
        told = token_commands.transcript(OurTools(), addresses)
    assert plainly(by_users(told)) == plainly(by_users((TRANSCRIPTS / "tokens.txt").read_text()))


def by_users(transcript: str) -> list[str]:
    """Without what somebody is told who logs in with a token, which our tools do not."""
    chapters = transcript.split("$ ")
    return [line for chapter in chapters if not chapter.startswith("token ") for line in chapter.splitlines()]


ACL_COMMANDS = """
--add --allow-principal User:alice --consumer --topic orders --group billing
--add --allow-principal User:alice --consumer --topic orders --group billing
--add --allow-principal User:alice --producer --idempotent --topic orders --transactional-id tx
--add --allow-principal User:alice --allow-principal User:bob --allow-host 10.0.0.7 --operation Read --topic sales
--add --deny-principal User:bob --operation All --topic sales- --resource-pattern-type prefixed
--add --allow-principal User:alice --operation ClusterAction --cluster
--add --allow-principal User:alice --operation CreateTokens --user-principal User:bob
--add --allow-principal User:alice --operation Describe --delegation-token TOKEN
--list
--list --topic orders
--list --topic orders --topic sales
--list --topic sales-eu --resource-pattern-type match
--list --topic sales-eu
--list --principal User:bob --principal User:nobody
--remove --force --allow-principal User:alice --operation Read --topic orders
--remove --force --topic sales
--remove --force --topic nothing
--list
--add --allow-principal alice --topic orders
--add --allow-principal User:alice --operation Commit --topic orders
--add --allow-principal User:alice --operation ClusterAction --topic orders
--add --topic orders
--add --allow-principal User:alice
--add --list --topic orders
--add --allow-principal User:alice --producer
--add --allow-principal User:alice --consumer --topic orders
--add --allow-principal User:alice --topic orders --resource-pattern-type any
--list --resource-pattern-type some
--remove --force --resource-pattern-type match --topic sales-eu
--remove --force --cluster
--list
"""


def test_acls(broker_kind: str, tool_process: LineProcess) -> None:
    """Each on a broker of its own, for what the first adds the second would find."""
    told = []
    for host in (OurTools(), tool_process):
        with running_broker(broker_kind.partition("*")[0], properties=ACL_PROPERTIES) as bootstrap:
            told.append([printed(Tools(host, bootstrap), line) for line in ACL_COMMANDS.strip().splitlines()])
    ours, apaches = told
    assert ours == apaches


def printed(tools: Tools, line: str) -> tuple[str, list[str]]:
    """The lines in an order, for the tool prints sets; of a failure Apache Kafka's prints its whole usage."""
    done = tools.run(ACLS, *line.split())
    return line, sorted(each.strip() for each in done.lines) if done.exit_code == 0 else ["failed"]
