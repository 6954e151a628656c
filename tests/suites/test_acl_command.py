"""Apache Kafka's kafka-acls prints of our ACLs what it prints of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.suites.tools import ACLS, Tools

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


NOTHING_OF_BOB = "ACLs for principal `User:bob`"


@pytest.fixture(scope="module")
def secured(broker_kind: str, tool_process: LineProcess) -> Iterator[Tools]:
    with running_broker(broker_kind.partition("*")[0], properties=PROPERTIES) as bootstrap:
        yield Tools(tool_process, bootstrap)


def printed(tools: Tools, *args: str) -> list[str]:
    """Lines without indentation, in an order: the tool prints sets."""
    done = tools.run(ACLS, *args)
    assert done.exit_code == 0, done.err
    return sorted(line.strip() for line in done.lines)


def entry(operation: str, principal: str = "User:alice", permission: str = "ALLOW") -> str:
    return f"(principal={principal}, host=*, operation={operation}, permissionType={permission})"


def test_rights_of_a_consumer_are_added_listed_and_removed(secured: Tools) -> None:
    consumer = ("--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "billing")
    added = printed(secured, "--add", *consumer)
    assert {entry("READ"), entry("DESCRIBE")} <= set(added)
    head = "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:"
    assert printed(secured, "--list", "--topic", "orders") == sorted([head, entry("DESCRIBE"), entry("READ")])
    assert printed(secured, "--list", "--principal", "User:bob", "--topic", "orders") == [NOTHING_OF_BOB]
    removed = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    printed(secured, "--remove", "--force", *removed)
    assert printed(secured, "--list", "--topic", "orders") == sorted([head, entry("DESCRIBE")])


def test_patterns_are_found_by_the_names_that_they_match(secured: Tools) -> None:
    deny = ("--deny-principal", "User:bob", "--operation", "All", "--topic", "sales-")
    printed(secured, "--add", *deny, "--resource-pattern-type", "prefixed")
    head = "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=sales-, patternType=PREFIXED)`:"
    found = printed(secured, "--list", "--topic", "sales-eu", "--resource-pattern-type", "match")
    assert found == sorted([head, entry("ALL", "User:bob", "DENY")])
    assert printed(secured, "--list", "--topic", "sales-eu") == []


def test_rights_on_the_cluster_are_added(secured: Tools) -> None:
    printed(secured, "--add", "--allow-principal", "User:alice", "--operation", "ClusterAction", "--cluster")
    head = "Current ACLs for resource `ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)`:"
    assert printed(secured, "--list", "--cluster") == sorted([head, entry("CLUSTER_ACTION")])
