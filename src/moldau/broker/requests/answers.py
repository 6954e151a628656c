"""One response out of several answers, some of which may have to be waited for, and of which there may be very many."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moldau.broker.context import Context
from moldau.coordinator.long_work import LongWork, Slice
from moldau.core.errors import ProtocolViolation
from moldau.core.limits import REPEATED_QUESTIONS_MAX
from moldau.wire.codec import encoder_in_steps
from moldau.wire.frame import SIZE_BYTES
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.broker.metrics.outcomes import Outcome

A = TypeVar("A")
R = TypeVar("R", bound=Message)
S = TypeVar("S")
T = TypeVar("T")

FORWARD_MS_MIN = 1_000  # a request with less time than that would be given up while a controller is elected
FORWARD_MS_MAX = 60_000  # Kafka's bound for requests that it forwards
FORWARD_MS = 30_000  # for one that says nothing of time, as long as clients wait by default
ROWS_MAX = 2_000  # to make and encode so many rows of a response takes some milliseconds; more are left to a thread


class Encoded(Generic[R]):
    """A large response, encoded where that held nobody up."""

    __slots__ = ("body", "kind", "outcome")

    def __init__(self, response: R, version: int, outcome_of: Callable[[R], Outcome] | None = None) -> None:
        self.kind = type(response)
        self.outcome = None if outcome_of is None else outcome_of(response)
        self.body: list[Any] = []
        encoder_in_steps(self.kind, version)(response, self.body)


class Relayed:
    """The controller's answer to a client, without its size; its header has the client's own correlation id."""

    __slots__ = ("frame",)

    def __init__(self, frame: bytes | memoryview) -> None:
        self.frame = frame

    def parts(self) -> list[Any]:
        return [len(self.frame).to_bytes(SIZE_BYTES, "big"), self.frame]


def time_allowed_ms(request: Any) -> int:
    """For how long a request may be on its way to the controller."""
    return min(max(FORWARD_MS_MIN, getattr(request, "timeout_ms", FORWARD_MS)), FORWARD_MS_MAX)


def together(answers: Sequence[A | Future[A]], shape: Callable[[list[A]], S]) -> S | Future[S]:
    """At once when all answers are here, which costs no task."""
    ready = [answer for answer in answers if not isinstance(answer, Future)]
    if len(ready) == len(answers):
        return shape(ready)
    return asyncio.ensure_future(_collect(answers, shape))


async def _collect(answers: Sequence[A | Future[A]], shape: Callable[[list[A]], S]) -> S:
    return shape([await answer if isinstance(answer, Future) else answer for answer in answers])


def in_turn(
    items: Iterable[T],
    ask: Callable[[T], A | Future[A]],
    shape: Callable[[list[A]], R],
    context: Context,
    *,
    rows: Callable[[list[A]], int] = len,
) -> R | Future[R | Encoded[R]]:
    """The same for one item after the other, of which there may be so many that others want their turn in between.

    `shape` may run in a thread, with answers that nobody changes any more, if they have many `rows`.
    """
    left = iter(items)
    answers: list[A | Future[A]] = []
    if not _go_on(left, ask, answers):
        return context.start(_finish(left, ask, answers, shape=shape, rows=rows, context=context))
    ready = [answer for answer in answers if not isinstance(answer, Future)]
    if len(ready) == len(answers) and rows(ready) <= ROWS_MAX:
        return shape(ready)
    return context.start(_finish(left, ask, answers, shape=shape, rows=rows, context=context))


def _go_on(left: Iterator[T], ask: Callable[[T], A | Future[A]], answers: list[A | Future[A]]) -> bool:
    """Ask until the slice is over; True when nothing is left."""
    turn = Slice(asyncio.get_running_loop())
    for item in left:
        answers.append(ask(item))
        if turn.is_over:
            return False
    return True


async def _finish(
    left: Iterator[T],
    ask: Callable[[T], A | Future[A]],
    answers: list[A | Future[A]],
    *,
    shape: Callable[[list[A]], R],
    rows: Callable[[list[A]], int],
    context: Context,
) -> R | Encoded[R]:
    long_work: LongWork = context.services.long_work
    await long_work.wait()
    while not _go_on(left, ask, answers):
        await long_work.wait()
    found = [await answer if isinstance(answer, Future) else answer for answer in answers]
    if rows(found) <= ROWS_MAX:
        return shape(found)
    answers.clear()
    return await encoded(lambda: _shape_and_free(found, shape), context)


def _shape_and_free(found: list[A], shape: Callable[[list[A]], R]) -> R:
    """A million rows take ten milliseconds and more to be freed, which the loop would do, or a thread at one go."""
    response = shape([*found])  # which may be what the response is made of
    while found:
        found.pop()
    return response


def by_size(shape: Callable[[], R], rows: int, context: Context) -> R | Coroutine[Any, Any, Encoded[R]]:
    """A response at once, or by a thread if it has many rows: `shape` must look at nothing that changes."""
    return shape() if rows <= ROWS_MAX else encoded(shape, context)


async def encoded(shape: Callable[[], R], context: Context) -> Encoded[R]:
    """A response that a thread makes and encodes: `shape` must look at nothing that changes."""
    metering = context.services.metering
    outcome_of = None if metering is None else metering.outcome_of
    return await in_thread(lambda: Encoded(shape(), context.version, outcome_of), context)


async def in_thread(work: Callable[[], T], context: Context) -> T:
    """What would hold the loop for long; it must look at nothing that changes, such as a request and an image."""
    return await context.compute(work, context.services.computing)


def refuse_repetition(questions: Sequence[Hashable]) -> None:
    """A guard against short requests with enormous answers.

    What differs is bounded by what exists; only the same question again and again makes an answer without bounds.
    """
    repeated = len(questions) - len(set(questions))
    if repeated > REPEATED_QUESTIONS_MAX:
        raise ProtocolViolation(f"{repeated} questions are repeated; allowed are {REPEATED_QUESTIONS_MAX}")
