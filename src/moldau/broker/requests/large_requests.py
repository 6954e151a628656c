"""Requests that take long because they are long: nobody else waits for one of them.

They are read, and their answers written, in a thread. Where each element of a request is a question of its own, the
handler gets some of them at a time, and the loop serves others in between.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from msgspec import msgpack, structs

from moldau.broker.requests.answers import Encoded, encoded, in_thread, refuse_repetition
from moldau.broker.requests.delayed_response import DelayedResponse, future_of
from moldau.coordinator.long_work import chunks
from moldau.core.limits import LARGE_REQUEST_PART, LARGE_REQUEST_PART_BYTES
from moldau.wire.decoding import Decoder

if TYPE_CHECKING:
    from moldau.broker.api import Api, Parts, Subject
    from moldau.broker.context import Context, Services


class LargeRequests:
    """One at a time is in a thread, however many are sent."""

    __slots__ = ("_services",)

    def __init__(self, services: Services) -> None:
        self._services = services

    async def answer(self, frame: memoryview, at: int, *, api: Api, decode: Decoder, context: Context) -> Any:
        """What the handler would answer, encoded. The frame must be the caller's own."""
        request, _ = await in_thread(lambda: decode(frame, at), context)
        parts = _parts_of(api, request)
        if parts is None:
            response = await outcome(api.call(request, context))
        else:
            response = await self._in_parts(request, parts, api, context, size_bytes=len(frame))
        if response is None or isinstance(response, Encoded):
            return response
        return await encoded(lambda: response, context)

    async def _in_parts(self, request: Any, parts: Parts, api: Api, context: Context, *, size_bytes: int) -> Any:
        asked, answered = parts
        elements = getattr(request, asked)
        await in_thread(lambda: _check(elements), context)
        whole: Any = None
        count = min(LARGE_REQUEST_PART, max(1, LARGE_REQUEST_PART_BYTES * len(elements) // size_bytes))
        for some in await in_thread(lambda: _portions(elements, api.subject, context, count), context):
            await self._services.long_work.wait()
            response = await outcome(api.call(structs.replace(request, **{asked: some}), context))
            if whole is None:
                whole = response
            else:
                getattr(whole, answered).extend(getattr(response, answered))
                whole.throttle_time_ms = max(whole.throttle_time_ms, response.throttle_time_ms)
        return whole


def _parts_of(api: Api, request: Any) -> Parts | None:
    """By which of its arrays a request is cut; which one has the elements depends on the version."""
    return next((each for each in api.parts if len(getattr(request, each[0]) or ()) > 1), None)


def _check(elements: list[Any]) -> None:
    """What handlers check as a whole: their parts know nothing of each other."""
    refuse_repetition(elements if isinstance(elements[0], str) else [msgpack.encode(each) for each in elements])


def _portions(elements: list[Any], subject: Subject | None, context: Context, count: int) -> list[list[Any]]:
    """What a handler gets at a time. Elements about one thing come together, so that it can apply its rule to them.

    Of very many about one thing it gets some, never one alone: that there are two is what the rules ask for.
    """
    if subject is None:
        return list(chunks(elements, count))
    about: dict[Hashable, list[Any]] = {}
    for element in elements:
        about.setdefault(subject(element, context), []).append(element)
    portions: list[list[Any]] = [[]]
    for same in about.values():
        for at in range(0, max(1, len(same) - 1), max(2, count)):
            end = at + max(2, count)
            some = same[at:end] if end < len(same) - 1 else same[at:]
            if portions[-1] and len(portions[-1]) + len(some) > count:
                portions.append([])
            portions[-1] += some
    return portions


async def outcome(answer: Any) -> Any:
    """What a handler gave, or what comes of it."""
    if isinstance(answer, DelayedResponse):
        return await future_of(answer)
    if isinstance(answer, Future) or asyncio.iscoroutine(answer):
        return await answer
    return answer
