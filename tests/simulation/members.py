"""A member of a classic group, as clients are: it joins, syncs, beats, and begins again when it is told so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.broker.handlers.heartbeat import heartbeat
from moldau.broker.handlers.leave_group import leave_group
from moldau.broker.handlers.sync_group import sync_group
from moldau.core.errors import ErrorCode
from moldau.groups.classic.members import Joining, Protocol
from moldau.wire.messages.heartbeat import HeartbeatRequest
from moldau.wire.messages.join_group import JoinGroupResponse
from moldau.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulation.assignments import read_assignment, shared_out, subscription
from tests.simulation.network import Lost
from tests.simulation.node import handled
from tests.simulation.pipelines import Kind

if TYPE_CHECKING:
    from tests.simulation.world import World

SESSION_MS = 6_000
REBALANCE_MS = 8_000
BACKOFF_S = 0.1


class Replaced(Exception):
    """Another one has this member's place."""


class Member:
    def __init__(
        self, world: World, group_id: str, *, topic: str, partition_count: int, instance_id: str | None = None
    ) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.instance_id = instance_id
        self.generation = -1
        self.partitions: list[int] = []
        self.must_join = True
        self._world = world
        self._topic = topic
        self._partition_count = partition_count
        self._protocols = (Protocol("range", subscription(topic)),)

    async def join(self) -> None:
        """Become a member of a generation, with an assignment; what we had is given up first."""
        self._let_go()
        while self.must_join:
            try:
                joined = await self._join()
                if joined.error_code != ErrorCode.NONE:
                    await self._heed(joined.error_code, joined.member_id)
                    continue
                self.member_id = joined.member_id
                assignment = await self._sync(joined)
            except Lost:
                await asyncio.sleep(BACKOFF_S)
                continue
            if assignment is not None:
                self.generation = joined.generation_id
                self.partitions = read_assignment(assignment)
                self.must_join = False
                self._world.claims.claim(self.group_id, self.member_id, self.partitions)
                if self._world.kind_of(self.group_id) is Kind.CLASSIC:
                    owner = self.instance_id or self.member_id
                    self._world.owners.given(self.group_id, self.generation, owner, self.partitions)

    def _let_go(self) -> None:
        self._world.claims.release(self.group_id, self.member_id, self.partitions)
        self.partitions = []

    async def _join(self) -> JoinGroupResponse:
        new_id = f"{self.instance_id or 'member'}-{self._world.next_number()}"
        joining = Joining(
            group_id=self.group_id,
            member_id=self.member_id,
            new_member_id=new_id,
            instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=self._protocols,
        )

        def failed(error: ErrorCode) -> JoinGroupResponse:
            return JoinGroupResponse(error_code=error, member_id=self.member_id)

        reply: JoinGroupResponse = await self._world.network.call(
            lambda services: services.groups.write(
                self.group_id, lambda shard, now_ms: shard.decide_join(joining, now_ms), failed
            )
        )
        return reply

    async def _sync(self, joined: JoinGroupResponse) -> bytes | None:
        assignments: dict[str, bytes] = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = shared_out([each.member_id for each in joined.members], self._topic, self._partition_count)
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=[SyncGroupRequestAssignment(member, each) for member, each in assignments.items()],
        )
        reply = await self._world.network.call(handled(sync_group, request, 5), lingers=True)
        if reply.error_code == ErrorCode.NONE:
            return bytes(reply.assignment)
        await self._heed(reply.error_code)
        return None

    async def beat(self) -> None:
        """Say that we live; afterwards `must_join` may be set."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        try:
            reply = await self._world.network.call(handled(heartbeat, request, 4), lingers=True)
        except Lost:
            return
        if reply.error_code != ErrorCode.NONE:
            await self._heed(reply.error_code)

    async def leave(self) -> None:
        request = LeaveGroupRequest(group_id=self.group_id, members=[MemberIdentity(self.member_id, self.instance_id)])
        self.must_join = True
        self._let_go()
        try:
            await self._world.network.call(handled(leave_group, request, 5), lingers=True)
        except Lost:
            return
        self.member_id = ""

    async def refused(self, error: int) -> None:
        """A commit was refused; if the reason is the group, join again."""
        await self._heed(error)

    async def _heed(self, error: int, member_id: str = "") -> None:
        match error:
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = member_id
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._let_go()
                self.member_id, self.must_join = "", True
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                self.must_join = True
            case ErrorCode.FENCED_INSTANCE_ID:
                raise Replaced
            case (
                ErrorCode.UNRELEASED_INSTANCE_ID
                | ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                | ErrorCode.NOT_COORDINATOR
                | ErrorCode.COORDINATOR_NOT_AVAILABLE
            ):
                await asyncio.sleep(BACKOFF_S)
            case _:
                self._world.violate(f"a member of {self.group_id} was told {ErrorCode(error).name}")
