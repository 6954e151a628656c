"""A client that is denied everything is told of in the audit log, and does not fill it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.denials import KINDS_MAX, LINES_MAX, WINDOW_S, Denials, Kind
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import Principal
from moldau.wire.api import ApiKey

CAROL = Principal("User", "carol")
READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
READS = Kind(CAROL, "10.0.0.1", READ, TOPIC)
NAMED = "Principal = User:carol from host = 10.0.0.1: operation = READ on resources of type Topic"


class Told:
    """The lines about what was left out, and a clock."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now_s = 0.0
        self.denials = Denials(self.lines.append, clock_s=lambda: self.now_s)

    def count(self, denials: int, kind: Kind = READS) -> int:
        """How many of so many denials have lines of their own."""
        return sum(self.denials.is_told(kind) for _ in range(denials))


def test_the_first_ones_are_told_one_by_one_and_the_others_are_counted() -> None:
    told = Told()
    assert told.count(LINES_MAX) == LINES_MAX
    assert told.lines == []
    assert told.count(250) == 0
    assert told.lines == [f"{NAMED}: more denials are counted, and not told one by one, for 60 s"]
    told.now_s = WINDOW_S
    assert told.count(1) == 1
    assert told.lines[1:] == [f"{NAMED}: 250 more denials were not told one by one"]


@pytest.mark.parametrize(
    "other",
    [
        READS._replace(principal=Principal("User", "dave")),
        READS._replace(host="10.0.0.2"),
        READS._replace(operation=WRITE),
        READS._replace(resource_type=ResourceType.GROUP),
    ],
    ids=["principal", "host", "operation", "type"],
)
def test_another_kind_has_lines_of_its_own(other: Kind) -> None:
    told = Told()
    told.count(LINES_MAX + 1)
    assert told.count(LINES_MAX, other) == LINES_MAX


def test_what_was_left_out_is_told_when_anybody_else_is_denied_something() -> None:
    told = Told()
    told.count(LINES_MAX + 7)
    told.now_s = WINDOW_S + 1
    told.count(1, READS._replace(host="10.0.0.2"))
    assert told.lines[1:] == [f"{NAMED}: 7 more denials were not told one by one"]


def test_memory_is_bounded_and_no_count_is_lost() -> None:
    told = Told()
    told.count(LINES_MAX + 7)
    for number in range(KINDS_MAX):
        told.count(1, READS._replace(host=f"10.1.{number // 256}.{number % 256}"))
    assert told.lines[1:] == [f"{NAMED}: 7 more denials were not told one by one"]


def test_the_audit_log_stays_short_but_has_every_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="moldau.audit")
    authorization = Authorization(Authorizer())
    header: Any = SimpleNamespace(api_key=int(ApiKey.HEARTBEAT), api_version=4)
    services: Any = SimpleNamespace(authorization=authorization)
    context = Context(services, header, Peer("SECURED", "10.0.0.1", 1, CAROL))
    for _ in range(2 * LINES_MAX):
        assert not context.may(READ, ResourceType.GROUP, "\U000e0001" * 8_191)
    assert len(caplog.messages) == LINES_MAX + 1
    assert max(map(len, caplog.messages)) < 600
    caplog.clear()
    acl = Acl(TOPIC, "t", PatternType.LITERAL, "User:carol", "*", READ, PermissionType.ALLOW)
    authorization.note_changes(context, "created", [acl] * 2 * LINES_MAX)
    assert len(caplog.messages) == 2 * LINES_MAX
