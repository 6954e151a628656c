"""Scenarios on an event loop, with an end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

import uvloop

SCENARIO_S_MAX = 20.0

Scenario = Callable[..., Awaitable[None]]


def on_a_loop(scenario: Scenario) -> Callable[..., None]:
    return _on(asyncio.run, scenario)


def on_a_brokers_loop(scenario: Scenario) -> Callable[..., None]:
    """For what asyncio's loop and uvloop's do each in their own way, as TLS."""
    return _on(uvloop.run, scenario)


def _on(run: Callable[[Coroutine[Any, Any, None]], None], scenario: Scenario) -> Callable[..., None]:
    @wraps(scenario)
    def test(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(scenario(*args, **kwargs), SCENARIO_S_MAX)

        run(bounded())

    return test
