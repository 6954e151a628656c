"""Delegation tokens: the same requests, by the same users, to Apache Kafka 4.3.1 and to us, with the same answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import pytest

from moldau.security.sasl.client_login import LoginFailed
from tests import apache_kafka
from tests.differential.peer import Answer, Peer
from tests.security.token_brokers import (
    Addresses,
    connected,
    hmac_of,
    log_in,
    logged_in,
    password_of,
    running_with_tokens,
)

pytestmark = [
    pytest.mark.xdist_group("differential"),
    pytest.mark.skipif(not apache_kafka.available(), reason="needs java, and Maven the first time"),
]

CREATE, RENEW, EXPIRE = "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"
DESCRIBE = "DescribeDelegationToken"
USERS = ("alice", "bob", "carol", "dave", "erin")
DESCRIBE_OPERATION, CREATE_TOKENS, DESCRIBE_TOKENS = 8, 13, 14
DELEGATION_TOKEN, USER = 6, 7
UNIT_MS = 100_000  # to which times are rounded, and all periods: the whole story takes less than half of it
EXPIRED, NOT_FOUND, MISMATCH = 66, 62, 63
PROPERTIES = {"delegation.token.max.lifetime.ms": "900000", "delegation.token.expiry.time.ms": "300000"}
Told = list[tuple[str, Any]]


class Story:
    """What one broker answers. Tokens go by the order in which they were created, times by when they were asked for."""

    def __init__(self, addresses: Addresses, running: ExitStack) -> None:
        self.addresses = addresses
        self.admin = running.enter_context(closing(connected(addresses.plain)))
        self.peers = {user: running.enter_context(closing(logged_in(addresses.secured, user))) for user in USERS}
        self.tokens: list[str] = []
        self.told: Told = []

    def ask(self, who: str, api: str, version: int, **fields: Any) -> Answer:
        peer = self.admin if who == "admin" else self.peers[who]
        asked_ms = int(time.time() * 1_000)
        answer = peer.ask(api, version, **fields)
        created = answer["token_id"] if isinstance(answer, dict) and api == CREATE else ""
        if created:
            self.tokens.append(created)
        self.told.append((f"{who}: {api} v{version} {self.plainly(fields, asked_ms)}", self.plainly(answer, asked_ms)))
        return answer

    def plainly(self, value: Any, asked_ms: int) -> Any:
        if isinstance(value, dict):
            shown = {key: each for key, each in value.items() if key != "throttle_time_ms"}
            return {
                key: _when(each, asked_ms) if "timestamp" in key else self.plainly(each, asked_ms)
                for key, each in shown.items()
            }
        if isinstance(value, list):
            return sorted((self.plainly(each, asked_ms) for each in value), key=repr)
        for number, token_id in enumerate(self.tokens):
            if value in (token_id, hmac_of(token_id)):
                return f"token {number}" if value == token_id else f"the HMAC of token {number}"
        return value

    def allow(self, user: str, operation: int, kind: int, name: str) -> None:
        rule = {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": 3,
            "principal": f"User:{user}",
            "host": "*",
            "operation": operation,
            "permission_type": 3,
        }
        answer = self.admin.ask("CreateAcls", 3, creations=[rule])
        assert isinstance(answer, dict)
        assert answer["results"][0]["error_code"] == 0, answer

    def until(self, user: str, api: str, is_so: Callable[[Any], bool], **fields: Any) -> None:
        """Apache Kafka's broker, and its controller too, learn a moment later of what the controller has said."""
        deadline_s = time.monotonic() + 20
        while not is_so(answer := self.peers[user].ask(api, 2, **fields)):
            assert time.monotonic() < deadline_s, answer

    def until_described(self, **counts: int) -> None:
        for user, count in counts.items():
            self.until(user, DESCRIBE, lambda answer, count=count: len(answer["tokens"]) == count, owners=None)  # type: ignore[misc]

    def until_refused(self, api: str, error: int, *, user: str = "alice", **fields: Any) -> None:
        """Asked again and again until nothing else comes of it."""
        self.until(user, api, lambda answer: answer["error_code"] == error, **fields)

    def log_in(self, number: int, mechanism: str, password: str | None = None) -> Peer | None:
        token_id = self.tokens[number]
        peer = connected(self.addresses.secured)
        try:
            secret = password_of(token_id) if password is None else password
            session = log_in(peer, mechanism, token_id, secret, is_by_token=True)
        except LoginFailed as wrong:
            peer.close()
            self.told.append((f"login by token {number} with {mechanism}", str(wrong)))
            return None
        lifetime_ms = session.session_lifetime_ms or 0
        self.told.append((f"login by token {number} with {mechanism}", _when(lifetime_ms, 0)))
        return peer


def _when(timestamp_ms: int, asked_ms: int) -> str | int:
    if timestamp_ms < asked_ms // 2:
        return timestamp_ms  # there is none
    return f"after {round((timestamp_ms - asked_ms) / UNIT_MS) * UNIT_MS // 1_000} s"


def principal(name: str, kind: str = "User") -> dict[str, str]:
    return {"principal_type": kind, "principal_name": name}


def every_request(story: Story, who: str) -> None:
    """Whatever is asked."""
    for version in (1, 2, 3):
        story.ask(who, CREATE, version, renewers=[principal("bob", "Group")], max_lifetime_ms=-1)
        story.ask(who, DESCRIBE, version, owners=None)
    for version in (1, 2):
        story.ask(who, RENEW, version, hmac=b"none", renew_period_ms=-1)
        story.ask(who, EXPIRE, version, hmac=b"none", expiry_time_period_ms=-1)


def creations(story: Story) -> None:
    for version, lifetime_ms in ((1, -1), (2, 0), (3, 600_000), (3, 10**15), (3, 100_000)):
        story.ask("alice", CREATE, version, renewers=[principal("bob")], max_lifetime_ms=lifetime_ms)
    story.ask("alice", CREATE, 3, renewers=[principal("bob"), principal("staff", "Group")], max_lifetime_ms=-1)
    alice = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    for who in ("alice", "carol", "erin"):
        story.ask(who, CREATE, 3, **alice, renewers=[], max_lifetime_ms=-1)
    for kind, name in (("Group", "alice"), (None, None), ("User", "")):
        owner = {"owner_principal_type": kind, "owner_principal_name": name}
        story.ask("carol", CREATE, 3, **owner, renewers=[principal("erin")] * 2, max_lifetime_ms=-1)


def descriptions(story: Story) -> None:
    asked: tuple[list[str] | None, ...] = (
        None,
        [],
        ["alice"],
        ["bob"],
        ["carol"],
        ["erin"],
        ["alice", "carol"],
        ["nobody"],
    )
    for who in USERS:
        for names in asked:
            owners = None if names is None else [principal(name) for name in names]
            story.ask(who, DESCRIBE, 3, owners=owners)
        for version in (1, 2):
            story.ask(who, DESCRIBE, version, owners=None)


def renewals(story: Story) -> None:
    hmacs = [hmac_of(story.tokens[0]), hmac_of("no such token"), b""]
    for who in USERS:
        for hmac in hmacs:
            story.ask(who, RENEW, 2, hmac=hmac, renew_period_ms=-1)
    story.until_refused(RENEW, MISMATCH, user="erin", hmac=hmac_of(story.tokens[-4]), renew_period_ms=-1)
    for period_ms in (0, 100_000, 200_000, 10**15, -7):
        story.ask("bob", RENEW, 1, hmac=hmacs[0], renew_period_ms=period_ms)
    story.ask("alice", RENEW, 2, hmac=hmac_of(story.tokens[4]), renew_period_ms=-1)  # past its maximum


def expiries(story: Story) -> None:
    hmacs = [hmac_of(story.tokens[0]), hmac_of("no such token"), b""]
    for who in USERS:
        for hmac in hmacs:
            story.ask(who, EXPIRE, 2, hmac=hmac, expiry_time_period_ms=700_000)
    for period_ms in (10**15, 100_000, 200_000):
        story.ask("bob", EXPIRE, 1, hmac=hmacs[0], expiry_time_period_ms=period_ms)


def endings(story: Story) -> None:
    """What has expired, what is gone, and who may still log in."""
    ended, removed = hmac_of(story.tokens[1]), hmac_of(story.tokens[2])
    story.ask("alice", EXPIRE, 2, hmac=ended, expiry_time_period_ms=0)
    story.until_refused(EXPIRE, EXPIRED, hmac=ended, expiry_time_period_ms=0)
    story.ask("alice", RENEW, 2, hmac=ended, renew_period_ms=-1)
    story.ask("erin", RENEW, 2, hmac=ended, renew_period_ms=-1)
    story.ask("alice", EXPIRE, 2, hmac=ended, expiry_time_period_ms=5)
    story.ask("erin", EXPIRE, 2, hmac=ended, expiry_time_period_ms=5)
    story.ask("bob", EXPIRE, 2, hmac=removed, expiry_time_period_ms=-1)
    story.until_refused(EXPIRE, NOT_FOUND, hmac=removed, expiry_time_period_ms=-1)
    story.until_described(alice=6)
    for api, period in ((RENEW, "renew_period_ms"), (EXPIRE, "expiry_time_period_ms")):
        story.ask("alice", api, 2, hmac=removed, **{period: -1})
    story.ask("alice", DESCRIBE, 3, owners=None)
    story.log_in(2, "SCRAM-SHA-256")


def logins(story: Story) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        peer = story.log_in(3, mechanism)
        assert peer is not None
        story.peers["token"] = peer
        every_request(story, "token")
        answer = peer.ask("Metadata", 12, topics=[{"name": "not-alices"}], allow_auto_topic_creation=False)
        assert isinstance(answer, dict)
        story.told.append(("a topic by a token", answer["topics"]))
        peer.close()
        assert story.log_in(3, mechanism, "not the HMAC") is None


def whole_story(kind: str) -> Told:
    with running_with_tokens(kind, PROPERTIES) as addresses, ExitStack() as running:
        story = Story(addresses, running)
        story.allow("carol", CREATE_TOKENS, USER, "User:alice")
        story.allow("carol", CREATE_TOKENS, USER, "Group:alice")
        story.allow("dave", DESCRIBE_TOKENS, USER, "User:alice")
        every_request(story, "admin")
        creations(story)
        story.allow("erin", DESCRIBE_OPERATION, DELEGATION_TOKEN, story.tokens[1])
        story.until_described(alice=7, bob=5, carol=4, dave=7, erin=4)
        descriptions(story)
        renewals(story)
        expiries(story)
        logins(story)
        endings(story)
        return story.told


def story_without_tokens(kind: str) -> Told:
    with running_with_tokens(kind, is_enabled=False) as addresses, ExitStack() as running:
        story = Story(addresses, running)
        for who in ("admin", "alice"):
            every_request(story, who)
        story.ask("alice", CREATE, 3, renewers=[principal("bob")], max_lifetime_ms=-1)
        return story.told


def test_every_answer_is_apache_kafkas(broker_kind: str) -> None:
    theirs, ours = whole_story("apache"), whole_story(broker_kind)
    assert len(theirs) > 100
    assert [what for what, _ in ours] == [what for what, _ in theirs]
    differing = [
        (what, f"theirs {one}", f"ours {other}")
        for (what, one), (_, other) in zip(theirs, ours, strict=True)
        if one != other
    ]
    assert differing == []


def test_every_answer_is_apache_kafkas_where_tokens_are_not_enabled(broker_kind: str) -> None:
    assert story_without_tokens(broker_kind) == story_without_tokens("apache")
