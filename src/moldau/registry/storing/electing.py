"""Who writes: one member of a consumer group of the protocol type `sr`, in which Confluent's registries elect, too.

The group's members tell where they answer. The one that the coordinator makes the group's leader names the registry's
leader to all of them: whoever was it, and otherwise the eligible one with the least URL.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from moldau.client.cluster import Cluster, CoordinatorKind, NoAnswer, Refused
from moldau.client.connection import Connection, Unsupported
from moldau.core.clock import Clock
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.wire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from moldau.wire.messages.join_group import JoinGroupRequestProtocol
from moldau.wire.messages.leave_group import MemberIdentity
from moldau.wire.messages.sync_group import SyncGroupRequestAssignment

PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
DUPLICATE_URLS = 1
RETRY_S = 0.5
NOBODY = ""
HOST = re.compile(r"[A-Za-z0-9._:%\[\]-]{1,255}")

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Where an instance answers."""

    host: str
    port: int
    master_eligibility: bool = True
    scheme: str = "http"
    leader: bool = False
    version: int = 1
    member_id: str = ""
    """Of a leader, as the group knows it: one that was started again answers at the same URL."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def fields(self) -> dict[str, Any]:
        """As Confluent's registries say and read them."""
        return {name: each for name, each in asdict(self).items() if name != "member_id"}

    def encoded(self) -> bytes:
        return json.dumps(self.fields).encode()

    def is_same(self, other: Identity | None) -> bool:
        return other is not None and other.url == self.url

    def is_still(self, other: Identity | None) -> bool:
        """And not another process in its place."""
        return other is not None and self.is_same(other) and other.member_id == self.member_id


def identity_of(fields: Mapping[str, Any]) -> Identity:
    """Raises ValueError, KeyError, TypeError, AttributeError or OverflowError."""
    host, port = str(fields["host"]), int(fields["port"])
    if not HOST.fullmatch(host) or not 0 < port < 1 << 16:
        raise ValueError(f"nobody can be asked at {host[:255]!r}, port {port}")
    return Identity(
        host,
        port,
        bool(fields.get("master_eligibility", True)),
        str(fields.get("scheme") or "http"),
        bool(fields.get("leader", False)),
    )


def readable(said: Iterable[tuple[str, bytes]]) -> dict[str, Identity]:
    """By member ids. Whoever says what nobody can read is a member that is never chosen, and holds up nobody."""
    found = {}
    for member_id, metadata in said:
        try:
            found[member_id] = identity_of(json.loads(metadata))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
            LOGGER.warning("passed over member %s of the group, whose words can't be read: %r", member_id, wrong)
    return found


def chosen(members: Mapping[str, Identity]) -> tuple[str, Identity] | None:
    """The leader's member id and where it answers; None if nobody may lead."""
    eligible = sorted((each for each in members.items() if each[1].master_eligibility), key=lambda each: each[1].url)
    leading = [each for each in eligible if each[1].leader]
    if len(leading) == 1:
        return leading[0]
    return eligible[0] if eligible else None


def assignment(members: Mapping[str, Identity]) -> bytes:
    """The same for all members."""
    found = chosen(members)
    has_twins = len({each.url for each in members.values()}) < len(members)
    fields: dict[str, Any] = {"version": 1, "error": DUPLICATE_URLS if has_twins else 0}
    if found is not None:
        fields |= {"master": found[0], "master_identity": found[1].fields}
    return json.dumps(fields).encode()


class _Lost(Exception):
    """The membership is gone, or about to be: join again."""


class Elector(threading.Thread):
    """`elected` is called in this thread with the leader, or with None as long as nobody is known to lead."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        identity: Identity,
        elected: Callable[[Identity | None], None],
        clock: Clock,
        *,
        session_ms: int = 10_000,
        heartbeat_ms: int = 3_000,
    ) -> None:
        super().__init__(name="registry-elector", daemon=True)
        self.failure: str | None = "joining the group"
        self._cluster = cluster
        self._group = group
        self._identity = identity
        self._elected = elected
        self._clock = clock
        self._session_ms = session_ms
        self._heartbeat_ms = heartbeat_ms
        self._rebalance_ms = 3 * session_ms
        self._ended = threading.Event()
        self._member_id = NOBODY
        self._generation = -1
        self._is_leader = False
        self._heard_ms = -(1 << 60)

    @property
    def has_session(self) -> bool:
        """Whether the coordinator heard of us so lately that it can't have given the place to somebody else."""
        return self._clock.elapsed_ms() - self._heard_ms < self._session_ms

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self._be_member()
            except (_Lost, NoAnswer, Refused, OSError, ProtocolViolation, Unsupported, ValueError) as wrong:
                self._revoke(str(wrong))
                self._ended.wait(0 if isinstance(wrong, _Lost) else RETRY_S)
            except Exception as wrong:  # without this thread nobody here would ever hear of a leader again
                LOGGER.exception("the election failed")
                self._revoke(repr(wrong))
                self._ended.wait(RETRY_S)
        self._cluster.close()

    def _revoke(self, why: str) -> None:
        if self.failure is None:
            LOGGER.info("no leader is known: %s", why)
        elif self.failure != why:
            LOGGER.warning("no leader is known: %s", why)
        self.failure = why
        self._elected(None)

    def _be_member(self) -> None:
        broker = self._cluster.coordinator(CoordinatorKind.GROUP, self._group)
        connection = self._cluster.new_connection(broker)
        try:
            while not self._ended.is_set():
                # The answer to a join comes when all members have joined.
                connection.wait_up_to(self._rebalance_ms / 1_000 + self._cluster.timeout_s)
                self._join(connection)
                connection.wait_up_to(self._cluster.timeout_s)
                self._stay(connection)
            self._leave(connection)
        finally:
            connection.close()

    def _join(self, broker: Connection) -> None:
        answer = broker.ask(self._join_request(), JoinGroupResponse)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = broker.ask(self._join_request(), JoinGroupResponse)
        self._check(answer.error_code)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        assignments = []
        if answer.leader == answer.member_id:
            made = assignment(readable((each.member_id, bytes(each.metadata)) for each in answer.members))
            assignments = [SyncGroupRequestAssignment(each.member_id, made) for each in answer.members]
        sent_ms = self._clock.elapsed_ms()
        request = SyncGroupRequest(
            self._group,
            self._generation,
            self._member_id,
            None,
            PROTOCOL_TYPE,
            answer.protocol_name or PROTOCOL,
            assignments,
        )
        synced = broker.ask(request, SyncGroupResponse)
        self._check(synced.error_code)
        self._heard_ms = sent_ms
        self._take(json.loads(bytes(synced.assignment)))

    def _join_request(self) -> JoinGroupRequest:
        said = replace(self._identity, leader=self._is_leader).encoded()
        return JoinGroupRequest(
            self._group,
            self._session_ms,
            self._rebalance_ms,
            self._member_id,
            None,
            PROTOCOL_TYPE,
            [JoinGroupRequestProtocol(PROTOCOL, said)],
        )

    def _take(self, found: Mapping[str, Any]) -> None:
        fields = found.get("master_identity")
        leader = None if fields is None else replace(identity_of(fields), member_id=str(found.get("master", "")))
        if found.get("error") == DUPLICATE_URLS:
            LOGGER.error("two instances say that they answer at one URL; set host.name of each")
            leader = None
        self.failure = None if leader is not None else "no instance may lead"
        self._is_leader = self._identity.is_same(leader)
        self._elected(leader)

    def _stay(self, broker: Connection) -> None:
        """Until the group changes."""
        while not self._ended.wait(self._heartbeat_ms / 1_000):
            sent_ms = self._clock.elapsed_ms()
            request = HeartbeatRequest(self._group, self._generation, self._member_id)
            code = broker.ask(request, HeartbeatResponse).error_code
            if code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._heard_ms = sent_ms
                LOGGER.info("the group of instances changes")
                return
            self._check(code)
            self._heard_ms = sent_ms

    def _check(self, code: int) -> None:
        if code == ErrorCode.NONE:
            return
        if code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}:
            self._member_id = NOBODY
            self._is_leader = False
            raise _Lost(ErrorCode(code).message)
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise _Lost("the group of instances changes")
        raise Refused(code)

    def _leave(self, broker: Connection) -> None:
        """So that another is elected at once."""
        self._elected(None)
        request = LeaveGroupRequest(self._group, members=[MemberIdentity(self._member_id, reason="the registry ends")])
        broker.ask(request, LeaveGroupResponse)
