"""What `moldau doctor` tells a user who may ask little, and of groups that never settle, on real brokers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer

import moldau
from moldau.cli.main import main
from tests.cli.conftest import run_tool

SETTLED_S_MAX = 60.0


def test_who_may_ask_little_is_told_once_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    with moldau.run(secure=True) as broker:
        for name in ("orders", "returns"):
            broker.create_topic(name)

        def as_user(settings: dict[str, str], *words: str) -> int:
            options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
            return main([*words, *options])

        admin = dict(broker.clients.confluent)
        reader = dict(broker.add_user("reader", "a-good-password").confluent)
        allow = ("acls", "add", "--principal", "reader", "--operation", "describe", "--topic", "*")
        assert as_user(admin, *allow) == 0
        capsys.readouterr()

        assert as_user(reader, "doctor", "--cluster", "-o", "json") == 0
        rows = json.loads(capsys.readouterr().out)
        unasked = {each["subject"]: each["seen"] for each in rows if each["check"] == "unasked"}
        assert len(unasked) == sum(each["check"] == "unasked" for each in rows), "each is told once"
        assert unasked["configurations of topics"] == "could not be asked: Topic authorization failed."
        assert set(unasked) >= {"log directories", "reassignments of partitions", "the active controller"}
        judged = {each["check"]: each["severity"] for each in rows}
        assert (judged["broker-reachable"], judged["under-replicated"]) == ("ok", "ok"), "the rest goes on"

        assert as_user(admin, "doctor", "--cluster", "-o", "json") == 0
        assert not [each for each in json.loads(capsys.readouterr().out) if each["check"] == "unasked"]


def until(consumers: list[Consumer], is_there: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + SETTLED_S_MAX
    while not is_there():
        assert time.monotonic() < deadline_s
        for each in consumers:
            each.poll(0.05)


def test_a_rebalance_that_does_not_end_is_found(bootstrap: str, topic: str) -> None:
    """A member that never comes by holds up another one that joins."""
    group = f"stuck-{uuid.uuid4().hex[:8]}"
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "max.poll.interval.ms": 60_000}
    assigned: list[object] = []
    first, second = Consumer(settings), Consumer(settings)
    try:
        # What is taken away is given up by its own hand, for which it would have to poll.
        first.subscribe(
            [topic],
            on_assign=lambda _, places: assigned.append(places),
            on_revoke=lambda consumer, _: consumer.unassign(),
        )
        until([first], lambda: bool(assigned))
        second.subscribe([topic])
        until([second], lambda: state_of(bootstrap, group) == "PreparingRebalance")
        finished = run_tool(bootstrap, "doctor", "--cluster", "-o", "json")
        rows = [each for each in json.loads(finished.stdout) if each["check"] == "rebalancing-groups"]
        (told,) = [each for each in rows if each["subject"] == f"group {group}"]
        assert told["severity"] == "warning"
        assert "unchanged for 5 s" in told["seen"]
    finally:
        second.close()
        first.close()


def state_of(bootstrap: str, group: str) -> str:
    rows = json.loads(run_tool(bootstrap, "groups", "list", "-o", "json").stdout)
    return next((str(each["state"]) for each in rows if each["group"] == group), "")
