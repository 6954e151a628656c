"""A member of a consumer group, of the protocol in which the broker assigns: one kind of request, again and again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.broker.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from moldau.core.errors import ErrorCode
from moldau.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.simulation.members import BACKOFF_S, REBALANCE_MS, Replaced
from tests.simulation.network import Lost
from tests.simulation.node import handled

if TYPE_CHECKING:
    from tests.simulation.world import World

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
NO_TIMEOUT = -1


class Subscriber:
    """It looks to applications as a member of a classic group does: `generation` is its epoch."""

    def __init__(
        self,
        world: World,
        group_id: str,
        *,
        topic: str,
        instance_id: str | None = None,
        pattern: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = f"subscriber-{world.next_number()}"
        self.instance_id = instance_id
        self.generation = JOINING
        self.partitions: list[int] = []
        self.must_join = True
        self._world = world
        self._topic_id = world.disk.topic_id(topic)
        self._topics = [topic] if pattern is None else None
        self._pattern = pattern
        self._assignor = assignor
        self._must_say_all = True

    async def join(self) -> None:
        """Until there is an epoch to work in; partitions may come later."""
        while self.must_join:
            if self.generation > 0:
                self.must_join = False
                return
            await self.beat()
            if self.generation <= 0:
                await asyncio.sleep(BACKOFF_S)

    async def beat(self) -> None:
        """Afterwards `must_join` is set if the assignment is another one, or was lost."""
        try:
            reply = await self._send(self.generation)
        except Lost:
            self._must_say_all = True
            return
        if reply.error_code != ErrorCode.NONE:
            await self._heed(reply.error_code)
            return
        self._must_say_all = False
        self.generation = reply.member_epoch
        if reply.assignment is not None:
            await self._take([index for each in reply.assignment.topic_partitions for index in each.partitions])

    async def _take(self, assigned: list[int]) -> None:
        """Give up first what is not ours any more, then begin with what is new; and say so next time."""
        gone = [index for index in self.partitions if index not in assigned]
        if gone:
            await self._dawdle()
        self._let_go(gone)
        new = [index for index in assigned if index not in self.partitions]
        self.partitions += new
        self._world.claims.claim(self.group_id, self.member_id, new)
        if gone or new:
            self.must_join = True
            self._must_say_all = True

    def _let_go(self, gone: list[int]) -> None:
        self.partitions = [index for index in self.partitions if index not in gone]
        self._world.claims.release(self.group_id, self.member_id, gone)

    async def _dawdle(self) -> None:
        if not self._world.is_calm:
            await asyncio.sleep(self._world.random.choice([0, 0, 0.1, 3, 12]))

    async def leave(self) -> None:
        """A static member leaves for a while, and may come back."""
        epoch = LEAVING if self.instance_id is None else LEAVING_FOR_A_WHILE
        self._let_go(list(self.partitions))
        try:
            await self._send(epoch)
        except Lost:
            return
        finally:
            self._begin_again()

    async def refused(self, error: int) -> None:
        """A commit was refused: the next heartbeat will say what is the matter."""
        if error == ErrorCode.FENCED_INSTANCE_ID:
            await self._heed(error)

    async def _send(self, epoch: int) -> ConsumerGroupHeartbeatResponse:
        says_all = self._must_say_all or epoch == JOINING
        owned = [TopicPartitions(self._topic_id, sorted(self.partitions))] if self.partitions else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if says_all else NO_TIMEOUT,
            subscribed_topic_names=self._topics if says_all else None,
            subscribed_topic_regex=self._pattern if says_all else None,
            server_assignor=self._assignor if says_all else None,
            topic_partitions=owned if says_all else None,
        )
        # It does not linger: one that comes late, over another connection, could take back what was said since.
        reply: ConsumerGroupHeartbeatResponse = await self._world.network.call(
            handled(consumer_group_heartbeat, request, 1)
        )
        return reply

    def _begin_again(self) -> None:
        self._let_go(list(self.partitions))
        self.generation, self.must_join, self._must_say_all = JOINING, True, True

    async def _heed(self, error: int) -> None:
        match error:
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_MEMBER_EPOCH | ErrorCode.GROUP_ID_NOT_FOUND:
                self._begin_again()
            case ErrorCode.FENCED_INSTANCE_ID:
                self._let_go(list(self.partitions))
                raise Replaced
            case (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                | ErrorCode.NOT_COORDINATOR
                | ErrorCode.COORDINATOR_NOT_AVAILABLE
                | ErrorCode.UNRELEASED_INSTANCE_ID
            ):
                self._must_say_all = True
                await asyncio.sleep(BACKOFF_S)
            case _:
                self._world.violate(f"a member of {self.group_id} was told {ErrorCode(error).name}")
