"""Markers are written one after the other, and others have their turn in between."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.marker_sender import MarkerSender
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.transaction import ProducerIdAndEpoch
from tests.coordinator.loops import on_a_loop

DUES = 50
WAIT_S_MAX = 120.0
WRITE_S = 0.001  # some two hundred are written in that time


@on_a_loop
async def test_thousands_of_markers_leave_others_their_turn() -> None:
    place = frozenset({TopicPartition("orders", 0)})
    dues = [MarkersDue(f"t{n}", ProducerIdAndEpoch(ProducerId(n), 0), True, place, 0) for n in range(DUES)]
    answers: list[Any] = [tuple(dues)]
    written: list[str] = []

    def note(due: MarkersDue, _: int) -> ErrorCode:
        written.append(due.transactional_id)
        return ErrorCode.NONE

    def write(decide: Any, _: Any, **__: Any) -> Any:
        shard = SimpleNamespace(
            decide_next_markers=lambda _: answers.pop() if answers else None, decide_markers_written=note
        )
        return decide(shard, 0)

    def mark(*_: object) -> ErrorCode:
        time.sleep(WRITE_S)
        return ErrorCode.NONE

    runtime = SimpleNamespace(is_stopped=False, write=write)
    sender = MarkerSender(cast("Any", runtime), coordinator_epoch=0, write_marker=mark)
    running, turns = asyncio.ensure_future(sender.run()), 0
    while not running.done():
        turns += 1
        await asyncio.sleep(0)
    await running
    assert len(written) == DUES
    assert turns > DUES // 20, "a slice is a few milliseconds long"


def due_of(number: int) -> MarkersDue:
    place = frozenset({TopicPartition("orders", 0)})
    return MarkersDue(f"t{number}", ProducerIdAndEpoch(ProducerId(number), 0), True, place, 0)


class Shard:
    """As much of a runtime with its shard as the sender sees. What is due is given once, until it was noted."""

    def __init__(self, *dues: MarkersDue) -> None:
        self.is_stopped = False
        self.dues = dues
        self.noted: asyncio.Queue[str] = asyncio.Queue()
        self.faults: list[Exception] = []
        self.prepared = {due.transactional_id for due in dues}

    def write(self, decide: Any, _: Any) -> Any:
        return decide(self, 0)

    @property
    def machine(self) -> Shard:
        return self

    def is_prepared(self, transactional_id: str) -> bool:
        return transactional_id in self.prepared

    def decide_next_markers(self, _: Any) -> Any:
        dues, self.dues = self.dues, ()
        return dues or asyncio.get_running_loop().create_future()

    def decide_markers_written(self, due: MarkersDue, _: int) -> ErrorCode:
        if self.faults:
            raise self.faults.pop()
        self.noted.put_nowait(due.transactional_id)
        return ErrorCode.NONE


@on_a_loop
async def test_a_fault_while_a_transaction_is_completed_leaves_it_to_be_completed_later() -> None:
    shard, committed = Shard(due_of(1)), asyncio.get_running_loop().create_future()
    shard.faults.append(KeyError("a mistake of ours"))
    sender = MarkerSender(cast("Any", shard), coordinator_epoch=0, write_marker=lambda *_: committed)
    running = asyncio.ensure_future(sender.run())
    committed.set_result(ErrorCode.NONE)
    async with asyncio.timeout(WAIT_S_MAX):
        assert await shard.noted.get() == "t1"
    assert not sender._retries
    running.cancel()


@on_a_loop
async def test_a_fault_about_one_transaction_does_not_keep_the_others_from_their_markers() -> None:
    shard = Shard(due_of(1), due_of(2))
    shard.faults.append(KeyError("a mistake of ours"))
    sender = MarkerSender(cast("Any", shard), coordinator_epoch=0, write_marker=lambda *_: ErrorCode.NONE)
    running = asyncio.ensure_future(sender.run())
    async with asyncio.timeout(WAIT_S_MAX):
        assert {await shard.noted.get() for _ in range(2)} == {"t1", "t2"}
    running.cancel()


@on_a_loop
async def test_what_was_given_up_is_remembered_only_while_it_is_due() -> None:
    shard = Shard(due_of(1), due_of(2))

    def refuse(_: TopicPartition, due: MarkersDue, __: int) -> ErrorCode:
        shard.prepared.discard("t1")
        return ErrorCode.INVALID_PRODUCER_EPOCH

    sender = MarkerSender(cast("Any", shard), coordinator_epoch=0, write_marker=refuse)
    running = asyncio.ensure_future(sender.run())
    async with asyncio.timeout(WAIT_S_MAX):
        while sender._under_way != {"t2"}:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0)
    assert shard.noted.empty(), "another coordinator completes them"
    running.cancel()
