"""A decision that waits to be written, and what its caller hears when it can't be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from moldau.controller.image import ClusterImage
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode


class Pending(NamedTuple):
    decide: Callable[[ClusterImage], Decision[Any]]
    reply: asyncio.Future[Any]


def refuse(replies: Iterable[asyncio.Future[Any]], error: ApiError) -> None:
    for reply in replies:
        if not reply.done():
            reply.set_exception(error)


def unexpected(wrong: Exception) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(wrong))
