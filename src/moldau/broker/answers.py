"""One response out of several answers, some of which may have to be waited for."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def together(answers: Sequence[A | Future[A]], shape: Callable[[list[A]], R]) -> R | Future[R]:
    """At once when all answers are here, which costs no task."""
    ready = [answer for answer in answers if not isinstance(answer, Future)]
    if len(ready) == len(answers):
        return shape(ready)
    return asyncio.ensure_future(_collect(answers, shape))


async def _collect(answers: Sequence[A | Future[A]], shape: Callable[[list[A]], R]) -> R:
    return shape([await answer if isinstance(answer, Future) else answer for answer in answers])
