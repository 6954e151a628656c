"""Tools that are given controllers of Apache Kafka, by the address of one that is not active."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.apache_cluster import ApacheCluster
from tests.clients.drivers import LineProcess
from tests.suites.moldau_tools import OurTools
from tests.suites.tools import ACLS, CLUSTER, CONFIGS, FEATURES, QUORUM, REASSIGNMENT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
OPEN = {**AUTHORIZER, "super.users": "User:ANONYMOUS"}
COMMANDS = [
    (CONFIGS, "--alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2"),
    (CONFIGS, "--describe --entity-type brokers --entity-default"),
    (CONFIGS, "--describe --entity-type brokers --entity-name 2"),
    (CONFIGS, "--alter --topic nope --add-config retention.ms=1"),
    (CONFIGS, "--alter --client-metrics lag --add-config metrics=org.apache,interval.ms=5000"),
    (CONFIGS, "--describe --client-metrics lag"),
    (CONFIGS, "--alter --client-metrics lag --delete-config metrics,interval.ms"),
    (ACLS, "--add --allow-principal User:alice --operation Read --topic orders"),
    (ACLS, "--list"),
    (ACLS, "--remove --force --topic orders"),
    (FEATURES, "upgrade --feature group.version=1"),
    (QUORUM, "describe --replication"),
    (CLUSTER, "list-endpoints"),
    (REASSIGNMENT, "--list"),
]
MOVING = re.compile(r"\b\d{2,}\b")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ApacheCluster]:
    with ApacheCluster(properties=OPEN) as running:
        yield running


def test_both_do_the_same(cluster: ApacheCluster, tool_process: LineProcess) -> None:
    """Every one of the three is given in turn: one of them is active, and two are not."""
    for address in cluster.controllers.values():
        told = [
            [f"{tool} {line}: {each}" for tool, line in COMMANDS for each in lines(host, tool, line, address)]
            for host in (tool_process, OurTools())
        ]
        apaches, ours = told
        assert ours == apaches


def lines(host: LineProcess | OurTools, tool: str, line: str, address: str) -> list[str]:
    """Without times and the log's end, which go on meanwhile; how a failure is told is compared elsewhere."""
    where = ["--bootstrap-controller", address]
    words = [*line.split(), *where] if tool == CLUSTER else [*where, *line.split()]
    done = host.ask({"class": tool, "args": words, "stdin": ""})
    if done["exit"] != 0:
        return ["failed"]
    return sorted(" ".join(MOVING.sub("N", each).split()) for each in done["out"].splitlines() if each.strip())
