"""Frames come out whole and in order, however the bytes arrive, and memory follows bytes, not promises."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.inbox import Inbox
from moldau.core import limits
from moldau.core.errors import ProtocolViolation

SCRATCH_BYTES = 64


def frame_of(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def deliver(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Feed a stream in pieces through a scratch buffer that somebody else overwrites after every turn."""
    scratch = bytearray(SCRATCH_BYTES)
    inbox = Inbox(memoryview(scratch))
    frames, at, turn = [], 0, 0
    while at < len(stream):
        space = inbox.space()
        count = min(len(space), len(stream) - at, cuts[turn % len(cuts)])
        space[:count] = stream[at : at + count]
        inbox.received(count)
        while (frame := inbox.next_frame()) is not None:
            frames.append(bytes(frame))
        inbox.keep()
        scratch[:] = b"\xee" * SCRATCH_BYTES
        at, turn = at + count, turn + 1
    return frames


@given(
    bodies=st.lists(st.binary(min_size=8, max_size=300), max_size=8),
    cuts=st.lists(st.integers(1, 100), min_size=1, max_size=8),
)
def test_frames_survive_any_cutting(bodies: list[bytes], cuts: list[int]) -> None:
    # The first two bytes are an API key; zero is Produce, which may be large.
    bodies = [b"\0\0" + body for body in bodies]
    assert deliver(b"".join(map(frame_of, bodies)), cuts) == bodies


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
