"""`moldau acls` against a running broker with an authorizer; the tests hold for Apache Kafka too."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from tests.brokers import running_broker
from tests.cli.conftest import Tool, run_tool

Done = Callable[..., str]
SEEN_S_MAX = 30.0  # Apache Kafka answers before it shows what it did
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def bootstrap(broker_kind: str) -> Iterator[str]:
    with running_broker(broker_kind, properties=AUTHORIZED) as address:
        yield address


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def until_listed(done: Done, topic: str, wanted: list[str]) -> None:
    deadline_s = monotonic() + SEEN_S_MAX
    while (listed := shown(done, topic)) != wanted:
        assert monotonic() < deadline_s, f"{topic} has {listed}"


def shown(done: Done, topic: str) -> list[str]:
    rows = json.loads(done("acls", "list", "--topic", topic, "-o", "json"))
    return [" ".join(row[key] for key in ("permission", "principal", "host", "operation", "pattern")) for row in rows]


def test_acls_are_added_listed_and_removed(done: Done, topic: str) -> None:
    told = done("acls", "add", "--principal", "alice", "--producer", "--topic", topic)
    assert told == "".join(
        f"added allow User:alice {each} on topic {topic}\n" for each in ("write", "describe", "create")
    )
    denied = ("--deny", "--principal", "bob", "--host", "10.0.0.7", "--operation", "read")
    done("acls", "add", *denied, "--topic", topic[:-1], "--prefixed")
    of_alice = [f"allow User:alice * {each} literal" for each in ("write", "create", "describe")]
    until_listed(done, topic, ["deny User:bob 10.0.0.7 read prefixed", *of_alice])
    header, *lines = done("acls", "list").splitlines()
    assert header.split() == ["PERMISSION", "PRINCIPAL", "HOST", "OPERATION", "TYPE", "NAME", "PATTERN"]
    assert ["allow", "User:alice", "*", "write", "topic", topic, "literal"] in [line.split() for line in lines]
    assert "alice" not in done("acls", "list", "--principal", "carol")

    one = ("--principal", "alice", "--operation", "write", "--topic", topic)
    assert done("acls", "remove", *one, "--dry-run") == f"would remove allow User:alice write on topic {topic}\n"
    assert done("acls", "remove", "--yes", *one) == f"removed allow User:alice write on topic {topic}\n"
    until_listed(done, topic, ["deny User:bob 10.0.0.7 read prefixed", *of_alice[1:]])
    assert done("acls", "remove", "--yes", "--topic", topic).count("removed allow User:alice") == 2
    done("acls", "remove", "--yes", "--deny", "--principal", "bob", "--topic", topic[:-1], "--prefixed")
    until_listed(done, topic, [])


def test_resources_and_operations_that_the_client_library_has_no_name_for(done: Done, topic: str) -> None:
    told = done("acls", "add", "--principal", "ops", "--operation", "create-tokens", "--user-principal", topic)
    assert told == f"added allow User:ops create-tokens on user User:{topic}\n"
    done("acls", "add", "--principal", "ops", "--operation", "TwoPhaseCommit", "--transactional-id", topic)
    deadline_s = monotonic() + SEEN_S_MAX
    while "two-phase-commit" not in done("acls", "list", "--principal", "ops"):
        assert monotonic() < deadline_s
    assert done("acls", "remove", "--yes", "--principal", "ops").count("removed") == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("remove", 2, "that would remove every ACL; say which are meant, or --all"),
        ("remove --topic nowhere", 1, "there is no such ACL; `moldau acls list` shows what there is"),
        ("add --principal a --topic t", 2, "expected what may be done with it: --operation, --producer or --consumer"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(bootstrap: str, words: str, code: int, message: str) -> None:
    ended = run_tool(bootstrap, "acls", *words.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"moldau acls: {message}\n")


def test_a_broker_without_an_authorizer_says_so(broker_kind: str) -> None:
    with running_broker(broker_kind) as open_broker:
        ended = run_tool(open_broker, "acls", "list")
    assert ended.returncode == 1
    assert ended.stderr.startswith("moldau acls: No Authorizer is configured")


def test_the_help_has_examples(bootstrap: str) -> None:
    assert "moldau acls add --principal alice --producer" in run_tool(bootstrap, "acls", "--help").stdout


def test_programs_hear_what_was_done(done: Done, topic: str) -> None:
    words = ("--principal", "alice", "--topic", topic, "--operation", "read", "-o", "json")
    acl = {"permission": "allow", "principal": "User:alice", "host": "*", "operation": "read", "type": "topic"}
    row = {**acl, "name": topic, "pattern": "literal"}
    assert json.loads(done("acls", "add", *words)) == [{**row, "done": "added"}]
    until_listed(done, topic, ["allow User:alice * read literal"])
    assert json.loads(done("acls", "remove", "--dry-run", *words)) == [{**row, "done": "would remove"}]
    assert json.loads(done("acls", "remove", "--yes", *words)) == [{**row, "done": "removed"}]


def test_nothing_is_removed_without_a_yes(tool: Tool, done: Done, topic: str) -> None:
    done("acls", "add", "--principal", "alice", "--topic", topic, "--operation", "read")
    until_listed(done, topic, ["allow User:alice * read literal"])
    refused = tool("acls", "remove", "--topic", topic)
    told = f"remove the ACL allow User:alice read on topic {topic}? Without a terminal to ask at it takes --yes"
    assert (refused.returncode, refused.stderr) == (2, f"moldau acls: {told}; nothing was done\n")
    assert shown(done, topic) == ["allow User:alice * read literal"]
