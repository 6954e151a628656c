"""Scenarios on an event loop, with an end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

SCENARIO_S_MAX = 20.0


def on_a_loop(scenario: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(scenario)
    def test(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(scenario(*args, **kwargs), SCENARIO_S_MAX)

        asyncio.run(bounded())

    return test
