"""What a handler is: one API, the versions it answers, and the function that answers them."""

from __future__ import annotations

import inspect
from asyncio import Future
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from moldau.wire.api import ApiKey
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.broker.context import Context

Request = TypeVar("Request", bound=Message)

# A response, or none at all (acks=0), now or later. A plain function that may have to wait returns a Future, so that
# the common case costs no task.
Parts: TypeAlias = tuple[str, str]
Subject: TypeAlias = "Callable[[Any, Context], Hashable]"
Answer: TypeAlias = "Any | Future[Any] | Coroutine[Any, Any, Any] | None"


@dataclass(frozen=True, slots=True)
class Api:
    """A row of the handler table; the only truth about which versions are advertised."""

    key: ApiKey
    request: type[Message]
    versions: tuple[int, int]
    call: Callable[[Any, Context], Answer]
    waits: bool
    """The handler is a coroutine: its frame must outlive this turn of the loop."""
    parts: tuple[Parts, ...] = ()
    """Of a request whose elements are questions of their own: their array, and that of the answers."""
    subject: Subject | None = None
    """What an element is about, where the handler has a rule for those that are about the same thing."""
    forwarded: bool = False
    """Only the controller can answer: any other broker sends the request on to it, in an envelope."""
    splits: bool = False
    """Of one that is forwarded: the handler does it, for some of the request is this broker's own."""


def api(
    key: ApiKey,
    request: type[Request],
    *,
    versions: tuple[int, int],
    parts: tuple[Parts, ...] = (),
    subject: Subject | None = None,
    forwarded: bool = False,
    splits: bool = False,
) -> Callable[[Callable[[Request, Context], Answer]], Api]:
    """Turn a function `(request, context) -> response` into a row of the handler table."""

    def row(call: Callable[[Request, Context], Answer]) -> Api:
        waits = inspect.iscoroutinefunction(call)
        return Api(
            key=key,
            request=request,
            versions=versions,
            call=call,
            waits=waits,
            parts=parts,
            subject=subject,
            forwarded=forwarded,
            splits=splits,
        )

    return row
