"""`moldau quotas` against a running broker; the tests hold for Apache Kafka too."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest

from tests.cli.conftest import Tool, run_tool

Done = Callable[..., str]
SEEN_S_MAX = 30.0  # Apache Kafka answers before it shows what it did


@pytest.fixture
def user(tool: Tool) -> Iterator[str]:
    name = f"alice-{uuid.uuid4().hex[:8]}"
    yield name
    tool("quotas", "delete", f"user={name}")
    tool("quotas", "delete", f"user={name}", "client-id=")


def until_listed(done: Done, user: str, wanted: list[dict[str, Any]]) -> None:
    deadline_s = monotonic() + SEEN_S_MAX
    while (listed := json.loads(done("quotas", "list", f"user={user}", "-o", "json"))) != wanted:
        assert monotonic() < deadline_s, f"{user} has {listed}"


def test_quotas_are_set_listed_and_deleted(done: Done, user: str) -> None:
    told = done("quotas", "set", f"user={user}", "producer_byte_rate=1MiB", "request_percentage=12.5%")
    assert told == f"set user={user} producer_byte_rate=1MiB request_percentage=12.5\n"
    own = {"entity": {"user": user}, "quotas": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}}
    until_listed(done, user, [own])
    header, *lines = done("quotas", "list").splitlines()
    assert header.split() == ["ENTITY", "QUOTAS"]
    assert [f"user={user}", "producer_byte_rate=1MiB", "request_percentage=12.5"] in [line.split() for line in lines]
    done("quotas", "set", f"user={user}", "client-id=", "consumer_byte_rate=2MB")
    of_clients = {"entity": {"client-id": None, "user": user}, "quotas": {"consumer_byte_rate": 2e6}}
    until_listed(done, user, [own, of_clients])
    told = done("quotas", "delete", f"user={user}", "producer_byte_rate")
    assert told == f"deleted user={user} producer_byte_rate\n"
    until_listed(done, user, [own | {"quotas": {"request_percentage": 12.5}}, of_clients])
    assert done("quotas", "delete", f"user={user}") == f"deleted user={user} request_percentage\n"
    until_listed(done, user, [of_clients])


LACKING = "expected an entity and what to set, such as user=alice producer_byte_rate=1MiB"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("set user=u", 2, LACKING),
        ("set producer_byte_rate=1", 2, LACKING),
        ("set user=u producer_byte_rate", 2, "producer_byte_rate: expected producer_byte_rate=VALUE"),
        ("set user=u producer_byte_rate=fast", 2, "producer_byte_rate=fast: expected a number, such as 1MiB"),
        ("set user=u connection_creation_rate=1", 1, "user=u: Invalid configuration key connection_creation_rate"),
        (
            "set user=User:u producer_byte_rate=1",
            2,
            "user=User:u: quotas name users without their type; use user=u",
        ),
        ("delete producer_byte_rate", 2, "expected an entity, such as user=alice"),
        ("delete user=nobody-at-all", 1, "user=nobody-at-all has no quotas"),
        ("list alice", 2, "alice: expected an entity, such as user=NAME"),
        (
            "list -X security.protocol=tls",
            2,
            "security.protocol=tls: expected one of plaintext, ssl, sasl_plaintext, sasl_ssl",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tool: Tool, words: str, code: int, message: str) -> None:
    ended = tool("quotas", *words.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"moldau quotas: {message}\n")


def test_nobody_there_and_somebody_else_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        ended = run_tool(address, "quotas", "list", "--timeout", "0.2")
    assert ended.returncode == 1
    expected = f"something listens at {address} but gave no answer in 0.2 s; is it a Kafka broker?"
    assert ended.stderr == f"moldau quotas: {expected}\n"
    ended = run_tool(address, "quotas", "list")
    expected = f"no broker answers at {address}; start one with: moldau start"
    assert ended.stderr == f"moldau quotas: {expected}\n"


def test_the_help_has_examples(tool: Tool) -> None:
    shown = tool("quotas", "--help").stdout
    assert "moldau quotas set user=alice producer_byte_rate=1MiB" in shown
