"""Producer ids, handed out in blocks so that one record covers a thousand producers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.members.brokers import broker_epoch_problem
from moldau.controller.records import ProducerIdsAllocated
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import ProducerId

BLOCK_SIZE = 1_000  # Kafka's: what a broker that restarts leaves unused

_PRODUCER_ID_MAX = 2**63 - 1

R = TypeVar("R")


def decide_allocate_producer_ids(image: ClusterImage, count: int = BLOCK_SIZE) -> Decision[range | ErrorCode]:
    first = image.next_producer_id
    if first > _PRODUCER_ID_MAX - count:
        return Decision.reply_only(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Decision(records=(ProducerIdsAllocated(first + count),), reply=range(first, first + count))


def decide_allocate_to_broker(image: ClusterImage, broker_id: int, broker_epoch: int) -> Decision[range | ErrorCode]:
    """A block for another broker than the controller, if it is the one that is registered."""
    stale = broker_epoch_problem(image, broker_id, broker_epoch)
    return decide_allocate_producer_ids(image) if stale is ErrorCode.NONE else Decision.reply_only(stale)


def apply_producer_ids_allocated(draft: Draft, record: ProducerIdsAllocated) -> None:
    draft.set(next_producer_id=record.next_producer_id)


class Writer(Protocol):
    def write(self, decide: Callable[[ClusterImage], Decision[R]]) -> Awaitable[R]: ...


class ProducerIds:
    """A broker's share of the ids. An id is never handed out twice, also over restarts."""

    def __init__(self, controller: Writer, *, elsewhere: Callable[[], Awaitable[range | None]] | None = None) -> None:
        """`elsewhere` gives a block of a controller on another broker; None if this broker is the controller."""
        self._controller = controller
        self._elsewhere = elsewhere
        self._next = 0
        self._end = 0
        self._refill = asyncio.Lock()

    async def next(self) -> ProducerId:
        if self._next == self._end:
            async with self._refill:
                # Those who waited for the lock find the block that its first holder fetched.
                if self._next == self._end:
                    await self._take_block()
        producer_id = ProducerId(self._next)
        self._next += 1
        return producer_id

    async def _take_block(self) -> None:
        block: range | ErrorCode | None = None if self._elsewhere is None else await self._elsewhere()
        if block is None:
            block = await self._controller.write(decide_allocate_producer_ids)
        if isinstance(block, ErrorCode):
            raise ApiError(block, "all producer ids are used up")
        self._next, self._end = block.start, block.stop
