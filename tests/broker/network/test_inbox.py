"""Frames come out whole and in order, however the bytes arrive, and memory follows bytes, not promises."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.network.frame_budget import FREE_BYTES, FrameBudget
from moldau.broker.network.inbox import Inbox
from moldau.core import limits
from moldau.core.errors import ProtocolViolation

SCRATCH_BYTES = 64


def frame_of(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def deliver(stream: bytes, cuts: list[int], *, goes_on: bool) -> list[bytes]:
    """Feed a stream in pieces through a scratch buffer that somebody else overwrites after every turn.

    `goes_on` says whether a turn receives again when the buffer was filled.
    """
    scratch = bytearray(SCRATCH_BYTES)
    inbox = Inbox(memoryview(scratch))
    frames: list[bytes] = []
    at = turn = 0
    while at < len(stream):
        space = inbox.space()
        count = min(len(space), len(stream) - at, cuts[turn % len(cuts)])
        space[:count] = stream[at : at + count]
        inbox.received(count)
        at, turn = at + count, turn + 1
        frames += map(bytes, iter(inbox.next_frame, None))
        while goes_on and at < len(stream) and inbox.may_have_more():
            space = inbox.space_behind()
            count = min(len(space), len(stream) - at, cuts[turn % len(cuts)])
            space[:count] = stream[at : at + count]
            inbox.received(count)
            at, turn = at + count, turn + 1
            frames += map(bytes, iter(inbox.next_frame, None))
        inbox.keep()
        scratch[:] = b"\xee" * SCRATCH_BYTES
    return frames


@given(
    bodies=st.lists(st.binary(min_size=8, max_size=300), max_size=8),
    cuts=st.lists(st.integers(1, 100), min_size=1, max_size=8),
    goes_on=st.booleans(),
)
def test_frames_survive_any_cutting(bodies: list[bytes], cuts: list[int], goes_on: bool) -> None:
    # The first two bytes are an API key; zero is Produce, which may be large.
    bodies = [b"\0\0" + body for body in bodies]
    assert deliver(b"".join(map(frame_of, bodies)), cuts, goes_on=goes_on) == bodies


def test_a_frame_that_a_full_buffer_cut_is_received_without_memory_of_its_own() -> None:
    inbox = Inbox(memoryview(bytearray(SCRATCH_BYTES)))
    frames = frame_of(b"\0" * 40) + frame_of(b"\1" * 40)
    inbox.space()[:] = frames[:SCRATCH_BYTES]
    inbox.received(SCRATCH_BYTES)
    assert bytes(inbox.next_frame() or b"") == b"\0" * 40
    assert inbox.next_frame() is None
    assert inbox.may_have_more()
    rest = frames[SCRATCH_BYTES:]
    inbox.space_behind()[: len(rest)] = rest
    inbox.received(len(rest))
    assert bytes(inbox.next_frame() or b"") == b"\1" * 40
    assert not inbox.may_have_more()


def test_there_is_no_more_to_expect_behind_a_buffer_with_room_or_for_a_frame_that_does_not_fit() -> None:
    for size, filled in ((SCRATCH_BYTES - 4, SCRATCH_BYTES - 1), (SCRATCH_BYTES - 3, SCRATCH_BYTES)):
        inbox = Inbox(memoryview(bytearray(SCRATCH_BYTES)))
        inbox.space()[:4] = struct.pack(">i", size)
        inbox.received(filled)
        assert inbox.next_frame() is None
        assert not inbox.may_have_more()


@pytest.mark.parametrize("size", [-1, 0, 1, 7, limits.FRAME_BYTES_MAX + 1, 2**31 - 1, -(2**31)])
def test_an_impossible_size_is_refused_before_anything_else_arrives(size: int) -> None:
    inbox = Inbox(memoryview(bytearray(SCRATCH_BYTES)))
    inbox.space()[:4] = struct.pack(">i", size)
    inbox.received(4)
    with pytest.raises(ProtocolViolation, match=f"frame of {size} bytes"):
        inbox.next_frame()


def test_only_produce_may_be_large() -> None:
    inbox = Inbox(memoryview(bytearray(SCRATCH_BYTES)))
    inbox.space()[:6] = struct.pack(">ih", limits.CONTROL_FRAME_BYTES_MAX + 1, 3)
    inbox.received(6)
    with pytest.raises(ProtocolViolation, match="API key 3"):
        inbox.next_frame()


def test_an_announced_size_costs_nothing() -> None:
    inbox = Inbox(memoryview(bytearray(SCRATCH_BYTES)))
    inbox.space()[:6] = struct.pack(">ih", limits.FRAME_BYTES_MAX, 0)
    inbox.received(6)
    assert inbox.next_frame() is None
    inbox.keep()
    assert len(inbox.space()) < limits.MIB


def test_a_whole_frame_that_waits_makes_it_full() -> None:
    inbox = Inbox(memoryview(bytearray(SCRATCH_BYTES)))
    frame = frame_of(b"\0\0" + b"123456")
    inbox.space()[: len(frame)] = frame
    inbox.received(len(frame))
    inbox.keep()
    assert inbox.is_full()
    assert inbox.next_frame() is not None
    inbox.keep()
    assert not inbox.is_full()


class Sender:
    """A connection that has announced a frame and sends as much of it as it may."""

    def __init__(self, budget: FrameBudget, frame_bytes: int) -> None:
        self.inbox = Inbox(memoryview(bytearray(limits.RECEIVE_BYTES)), budget=budget)
        self.inbox.on_room = self.retry
        self.left_bytes = frame_bytes + 4
        self.reading = True
        self.frames = 0
        self.receive(struct.pack(">ih", frame_bytes, 0))

    def receive(self, data: bytes) -> None:
        self.inbox.space()[: len(data)] = data
        self.inbox.received(len(data))
        self.left_bytes -= len(data)
        self.retry()

    def retry(self) -> None:
        while self.inbox.next_frame() is not None:
            self.frames += 1
        self.reading = self.inbox.keep()

    def send(self, limit_bytes: int = 1 << 30) -> None:
        """Until it is all sent, that much of it is, or the inbox takes no more."""
        while self.reading and self.left_bytes and limit_bytes > 0:
            count = min(len(self.inbox.space()), self.left_bytes, limit_bytes)
            assert count, "an inbox that is read has room"
            limit_bytes -= count
            self.receive(bytes(count))


FRAME_BYTES = 2 * limits.MIB


def test_beyond_the_budget_one_connection_goes_on_and_the_others_follow() -> None:
    budget = FrameBudget(3 * limits.MIB)
    senders = [Sender(budget, FRAME_BYTES) for _ in range(6)]
    for sender in senders:
        sender.send(FRAME_BYTES // 2)
    assert {sender.reading for sender in senders} == {True, False}
    assert sum(len(sender.inbox.space()) for sender in senders) < 3 * limits.MIB + FRAME_BYTES
    for _ in senders:
        for sender in senders:
            sender.send()
    assert [sender.frames for sender in senders] == [1] * 6


def test_a_connection_that_ends_gives_its_share_to_the_next() -> None:
    budget = FrameBudget(limits.MIB)
    stalled, waiting = Sender(budget, FRAME_BYTES), Sender(budget, FRAME_BYTES)
    stalled.send(FRAME_BYTES - limits.KIB)
    waiting.send()
    assert (waiting.reading, budget.is_short) == (False, True)
    assert (stalled.inbox.holds_up_others, waiting.inbox.holds_up_others) == (True, False)
    stalled.inbox.close()
    waiting.send()
    assert (waiting.frames, budget.is_short) == (1, False)


def test_one_that_ends_while_it_waits_is_forgotten() -> None:
    budget = FrameBudget(limits.MIB)
    favoured, waiting = Sender(budget, FRAME_BYTES), Sender(budget, FRAME_BYTES)
    favoured.send(FRAME_BYTES - limits.KIB)
    waiting.send()
    waiting.inbox.close()
    assert not budget.is_short
    favoured.send()
    again = Sender(budget, FRAME_BYTES)
    again.send()
    assert (favoured.frames, again.frames) == (1, 1)


def test_usual_frames_need_no_share() -> None:
    budget = FrameBudget(limits.MIB)
    Sender(budget, FRAME_BYTES).send(FRAME_BYTES - limits.KIB)
    usual = Sender(budget, FREE_BYTES // 2)
    usual.send(100)
    usual.send()
    assert usual.frames == 1
