"""Client quotas around the handlers: the time that they take is measured, answers tell how long a client has to pause,
and its connection is muted meanwhile (KIP-219)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from functools import partial
from time import perf_counter_ns, thread_time_ns
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moldau.broker.context import Context
from moldau.broker.network.outbox import Part
from moldau.broker.quotas.clients import Client, ClientQuotas, MutationQuota
from moldau.broker.quotas.throttle_times import tell, told_ms
from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.broker.requests.dispatch import Begun, Muted, Unanswered
from moldau.wire.api import ApiKey

if TYPE_CHECKING:
    from moldau.broker.context import Peer, Services
    from moldau.broker.metrics.metering import Metering, RequestCounts
    from moldau.broker.requests.dispatch import Dispatch
    from moldau.wire.frame import RequestHeader

T = TypeVar("T")


class Stopwatch:
    """The time that one request has taken of the loop and of threads, and whether it counts."""

    __slots__ = ("is_exempt", "spent_ns")

    def __init__(self) -> None:
        self.spent_ns = 0
        self.is_exempt = False

    async def timed(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this, and count the time in which it runs and not that in which it waits."""
        result: T = await self._steps(work)
        return result

    @coroutine
    def _steps(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        step = partial(work.send, None)
        while True:
            began_ns = perf_counter_ns()
            try:
                waits_for = step()
            except StopIteration as over:
                return over.value
            finally:
                self.spent_ns += perf_counter_ns() - began_ns
            try:
                step = partial(work.send, (yield waits_for))
            except BaseException as wrong:
                step = partial(work.throw, wrong)


class Measured(Generic[T]):
    """What a thread does: its processor time, without what it waits for the disk, or for the loop to let it go on."""

    __slots__ = ("_work", "spent_ns")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.spent_ns = 0

    def __call__(self) -> T:
        began_ns = thread_time_ns()
        try:
            return self._work()
        finally:
            self.spent_ns = thread_time_ns() - began_ns


class LimitedContext(Context):
    """The surroundings of a request that is limited."""

    __slots__ = ("stopwatch",)

    def __init__(self, stopwatch: Stopwatch, services: Services, header: RequestHeader, peer: Peer) -> None:
        super().__init__(services, header, peer)
        self.stopwatch = stopwatch

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        return asyncio.ensure_future(self.stopwatch.timed(work))

    async def compute(self, work: Callable[[], T], executor: Executor) -> T:
        measured = Measured(work)
        try:
            return await super().compute(measured, executor)
        finally:
            self.stopwatch.spent_ns += measured.spent_ns  # here and not in the thread: the loop writes it, too

    def exempt(self) -> None:
        self.stopwatch.is_exempt = True


class LimitedAnswer(Unanswered):
    """A request whose answer comes later, and may have to tell of a pause then."""

    __slots__ = ("_asked", "_throttling", "pause_ms")

    may_pause = True

    def __init__(self, later: asyncio.Future[Any] | DelayedResponse[Any], asked: Asked, throttling: Throttling) -> None:
        super().__init__(later, asked.begun.route, asked.begun.context.header)
        self._asked = asked
        self._throttling = throttling
        self.pause_ms = 0

    def parts(self) -> list[Part] | None:
        parts, self.pause_ms = self._throttling.settle(self.response(), self._asked)
        return parts


class Asked:
    """A request under way: who asked, with how many bytes, and the time it took so far."""

    __slots__ = ("began_ns", "begun", "client", "counts", "size_bytes", "stopwatch")

    def __init__(self, begun: Begun, size_bytes: int, stopwatch: Stopwatch, began_ns: int) -> None:
        self.began_ns = began_ns
        self.counts: RequestCounts | None = None
        """Where metrics are on."""
        self.begun = begun
        self.client = client_of(begun.context)
        self.size_bytes = size_bytes
        self.stopwatch = stopwatch


class Throttling:
    """What a broker with any quota answers requests through. One without has none of this."""

    __slots__ = ("clients", "metering")

    def __init__(self, clients: ClientQuotas) -> None:
        self.clients = clients
        self.metering: Metering | None = None
        """None where metrics are off."""

    def answer(self, dispatch: Dispatch, frame: memoryview, peer: Peer) -> list[Part] | Unanswered | None:
        stopwatch, began_ns, size_bytes = Stopwatch(), perf_counter_ns(), len(frame)
        begun = dispatch.begun(frame, peer, partial(LimitedContext, stopwatch), stopwatch.timed)
        if not isinstance(begun, Begun):
            return begun
        stopwatch.spent_ns += perf_counter_ns() - began_ns
        asked = Asked(begun._replace(request=None), size_bytes, stopwatch, began_ns)
        if self.metering is not None:
            asked.counts = self.metering.begun(begun)
        if isinstance(begun.answer, asyncio.Future | DelayedResponse):
            later = LimitedAnswer(begun.answer, asked, self)
            if not begun.answer.done():
                return later
            parts, pause_ms = later.parts(), later.pause_ms
        else:
            parts, pause_ms = self.settle(begun.answer, asked)
        return Muted(pause_ms, parts or ()) if pause_ms else parts

    def settle(self, response: Any, asked: Asked) -> tuple[list[Part] | None, int]:
        """The bytes of a response that tells of the longest pause, and that pause."""
        route, context = asked.begun.route, asked.begun.context
        key, version = route.api.key, context.version
        pause_ms = told_ms(response, key, version)
        if key == ApiKey.PRODUCE:
            pause_ms = max(pause_ms, self.clients.produced(asked.client, asked.size_bytes))
        # A request that gets no answer is exempt, as in Kafka: acks=0 says nothing of a pause either.
        is_timed = self.clients.counts_time and response is not None and not asked.stopwatch.is_exempt
        if is_timed:
            pause_ms = max(pause_ms, self.clients.took(asked.client, asked.stopwatch.spent_ns))
        if response is None:
            self._count(asked, None, None, pause_ms)
            return None, pause_ms
        if pause_ms:
            tell(response, pause_ms, key, version)
        began_ns = perf_counter_ns()
        parts = route.reply(response, context.header.correlation_id)
        if is_timed:
            self.clients.took(asked.client, perf_counter_ns() - began_ns)  # is for the next request to pay
        self._count(asked, response, parts, pause_ms)
        return parts, pause_ms

    def _count(self, asked: Asked, response: Any, parts: list[Part] | None, pause_ms: int) -> None:
        if self.metering is None or asked.counts is None:
            return
        client_id = asked.begun.context.header.client_id
        self.metering.answered(asked.counts, client_id, response, parts, asked.size_bytes, asked.began_ns)
        if pause_ms:
            self.metering.paused(asked.counts, client_id, pause_ms)

    def fetching(self, context: Context) -> FetchQuota | None:
        client = client_of(context)
        bytes_max = self.clients.fetch_bytes_max(client)
        return None if bytes_max is None else FetchQuota(self.clients, client, bytes_max)

    def mutating(self, context: Context, *, strict: bool) -> MutationQuota | None:
        return self.clients.mutating(client_of(context), strict=strict)


class FetchQuota:
    """Of one request."""

    __slots__ = ("_client", "_clients", "bytes_max")

    def __init__(self, clients: ClientQuotas, client: Client, bytes_max: int) -> None:
        self._clients, self._client, self.bytes_max = clients, client, bytes_max

    def throttle_ms(self, size_bytes: int) -> int:
        """For how long the client has to pause instead of getting so many bytes; 0 where it gets them."""
        return self._clients.fetched(self._client, size_bytes)


def client_of(context: Context) -> Client:
    return Client(context.principal.name, context.header.client_id or "")
