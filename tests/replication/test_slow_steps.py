"""Steps of logins that wait for somebody else: the loop goes on, two are under way, and nobody has to wait for them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from moldau.replication.slow_steps import THREADS_MAX, SlowSteps
from moldau.security.sasl.mechanism import SaslClient
from tests.coordinator.loops import on_a_brokers_loop
from tests.replication.test_channel_security import LOGINS, channel_to, secured
from tests.security.sasl.login_server import LoginServer
from tests.security.sasl.test_client_login import credentials


@on_a_brokers_loop
async def test_what_a_step_returns_or_raises_comes_back() -> None:
    steps = SlowSteps()
    assert await steps.run(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        await steps.run(lambda: 1 // 0)
    assert await steps.run(lambda: 7) == 7


@on_a_brokers_loop
async def test_a_thread_that_can_not_be_started_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = SlowSteps()

    def fails(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fails)
        for _ in range(THREADS_MAX + 1):
            with pytest.raises(RuntimeError, match="new thread"):
                await steps.run(lambda: 7)
    assert await asyncio.wait_for(steps.run(lambda: 7), 10) == 7


@on_a_brokers_loop
async def test_a_cancelled_caller_leaves_its_thread_behind_and_the_place_taken() -> None:
    steps, answer = SlowSteps(), threading.Event()
    stuck = [asyncio.ensure_future(steps.run(answer.wait)) for _ in range(THREADS_MAX)]
    await asyncio.sleep(0)
    for each in stuck:
        each.cancel()
    later = asyncio.ensure_future(steps.run(lambda: 7))
    done, _ = await asyncio.wait([*stuck, later], timeout=0.2)
    assert (done, later.done()) == (set(stuck), False)
    answer.set()
    assert await asyncio.wait_for(later, 10) == 7


@on_a_brokers_loop
async def test_a_channel_logs_in_while_the_loop_goes_on() -> None:
    """A KDC that answers when the loop has turned, and not before."""
    who, turned = credentials("SCRAM-SHA-512"), threading.Event()

    def begin(host: str) -> SaslClient:
        assert turned.wait(10), "the loop stood still"
        assert host == "127.0.0.1"
        return who.begin(host)

    with LoginServer(LOGINS) as server:
        async with channel_to(server, secured(who=replace(who, begin=begin, is_slow=True))) as channel:
            asked = asyncio.ensure_future(channel.ask())
            await asyncio.sleep(0.05)
            turned.set()
            await asked
    assert [each.name for each in server.principals] == ["alice"]


STUCK = """
import asyncio, threading
from moldau.replication.slow_steps import SlowSteps

async def main():
    step = asyncio.ensure_future(SlowSteps().run(threading.Event().wait))
    await asyncio.sleep(0.1)
    step.cancel()

asyncio.run(main())
"""


def test_no_end_of_a_process_waits_for_a_step() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
