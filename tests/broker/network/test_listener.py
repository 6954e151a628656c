"""Whose connections a listener ends by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import struct
from collections.abc import Iterator
from typing import cast

import pytest

from moldau.broker.context import Services
from moldau.broker.network import listener as listening
from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener
from moldau.broker.requests.dispatch import Dispatch
from moldau.core import limits

WAIT_S_MAX = 20.0
LIMITS = ConnectionLimits(idle_ms_max=600_000)
HALF_A_FRAME = struct.pack(">ih", 4 * limits.MIB, 0) + bytes(2 * limits.MIB)
NO_SERVICES = cast("Services", None)  # no request ever gets so far as to need one


def test_silence_in_a_large_frame_that_others_wait_for_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_SWEEP_S_MAX", 0.1)
    monkeypatch.setattr(listening, "_STALL_S_MAX", 0.2)

    async def test() -> None:
        listener = Listener("PLAINTEXT")
        listener.bind("127.0.0.1", 0)
        budget = FrameBudget(limits.MIB)
        listener.start(Dispatch((), NO_SERVICES), LIMITS, budget, ConnectionQuotas())
        (reader, silent) = await asyncio.open_connection(listener.host, listener.port)
        silent.write(HALF_A_FRAME)
        await silent.drain()
        (_, waiting) = await asyncio.open_connection(listener.host, listener.port)
        waiting.write(HALF_A_FRAME)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(1) == b""
        while budget.is_short:  # noqa: ASYNC110 - the listener's turn comes with the loop's
            await asyncio.sleep(0.01)
        assert len(listener._connections) == 1
        listener.close()
        for writer in (silent, waiting):
            writer.transport.abort()

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_a_large_frame_that_comes_byte_by_byte_while_others_wait_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two such clients held all the memory there is for large frames, for as long as they liked."""
    monkeypatch.setattr(listening, "_SWEEP_S_MAX", 0.1)
    monkeypatch.setattr(listening, "_HOLD_S_MAX", 0.5)

    async def test() -> None:
        listener = Listener("PLAINTEXT")
        listener.bind("127.0.0.1", 0)
        budget = FrameBudget(limits.MIB)
        listener.start(Dispatch((), NO_SERVICES), LIMITS, budget, ConnectionQuotas())
        (_, dripping) = await asyncio.open_connection(listener.host, listener.port)
        dripping.write(HALF_A_FRAME)
        await dripping.drain()
        (_, waiting) = await asyncio.open_connection(listener.host, listener.port)
        waiting.write(HALF_A_FRAME)
        while not budget.is_short:  # noqa: ASYNC110 - the listener's turn comes with the loop's
            await asyncio.sleep(0.01)
        while budget.is_short:
            dripping.write(b"x")
            await asyncio.sleep(0.01)
        assert len(listener._connections) == 1
        listener.close()
        for writer in (dripping, waiting):
            writer.transport.abort()

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """None is left in this process for the length of the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(taken[0]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def test_a_lack_of_descriptors_is_one_line_and_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "_PAUSE_S", 0.01)

    async def test() -> None:
        listener = Listener("PLAINTEXT")
        listener.bind("127.0.0.1", 0)
        with contextlib.closing(socket.create_connection((listener.host, listener.port))):
            with no_descriptors():
                listener.start(Dispatch((), NO_SERVICES), LIMITS, FrameBudget(), ConnectionQuotas())
                await asyncio.sleep(0.2)
            while not listener._connections:  # noqa: ASYNC110 - the listener's turn comes with the loop's
                await asyncio.sleep(0.01)
        listener.close()
        assert caplog.messages == ["not accepting on PLAINTEXT for 0.01 s: Too many open files"]

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
