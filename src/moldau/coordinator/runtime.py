"""Decisions at work: facts go to the journal, into the state and, once they are committed, replies go out.

A decision is applied as soon as it is made, so that the next one builds on it, but nobody hears of it before its facts
are committed. Facts of one turn of the event loop share one append. If an append fails the state holds facts that the
journal does not; the runtime ends then, and the next one starts from what the journal holds.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from moldau.coordinator.journal import CoordinatorRecord, Journal, TransactionalProducer
from moldau.coordinator.long_work import LongWork
from moldau.coordinator.timers import Timers
from moldau.core.clock import Clock
from moldau.core.decision import Decision, Delayed, Timer
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.repeated_line import RepeatedLine

APPEND_BYTES_MAX = 256 * 1024  # one append holds the loop for as long as it takes to write this much
TIMER_RETRY_MS = 60_000  # a decision that failed may fail again, and each time says so
ENTRY_OVERHEAD_BYTES = 40  # more than a record adds to its key and value
BATCH_OVERHEAD_BYTES = 61

R = TypeVar("R")
M = TypeVar("M", bound="Machine")

LOGGER = logging.getLogger(__name__)

TOO_LARGE = ErrorCode.RECORD_LIST_TOO_LARGE
_HEARD_AS = {
    TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


class Machine(Protocol):
    """The state and its decisions; it knows neither clock nor log."""

    def apply(self, fact: Any) -> None: ...

    def encode(self, fact: Any) -> CoordinatorRecord | None:
        """None for a fact that lives in memory only."""
        ...

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]: ...


class DelayedReply(NamedTuple):
    """A request without an answer yet; `failed` makes the answer if it can't be had."""

    future: Future[Any]
    failed: Callable[[ErrorCode], Any]

    def answer(self, reply: Any) -> None:
        if not self.future.done():  # its connection may be gone
            self.future.set_result(reply)

    def fail(self, error: ErrorCode) -> None:
        self.answer(self.failed(error))


class Append:
    """Facts that are written together, and the replies that depend on them."""

    __slots__ = ("end_offset", "entries", "replies", "size_bytes")

    def __init__(self) -> None:
        self.entries: list[CoordinatorRecord] = []
        self.size_bytes = BATCH_OVERHEAD_BYTES
        self.replies: list[tuple[DelayedReply, Any]] = []
        self.end_offset = -1


class Runtime(Generic[M]):
    """One machine with its journal, owned by the event loop."""

    def __init__(
        self,
        machine: M,
        journal: Journal,
        *,
        clock: Clock,
        long_work: LongWork | None = None,
        on_failed: Callable[[], None] | None = None,
        unwritten: RepeatedLine | None = None,
    ) -> None:
        """`on_failed` is called when an append or its fsync failed: another runtime is needed then, and the next append
        may fail like this one, so that all of them share one line of the log, `unwritten`.
        """
        self.machine = machine
        self._on_failed = on_failed
        self._unwritten = unwritten or unwritten_facts()
        self._too_large = RepeatedLine(LOGGER, logging.ERROR)  # who may not fail tries it many times a second
        self.is_stopped = False
        self._journal = journal
        self._clock = clock
        self._long_work = long_work or LongWork()
        self._loop = asyncio.get_running_loop()
        self._timers = Timers(self._loop, self._fire, self._long_work)
        self._delayed: dict[Hashable, DelayedReply] = {}
        self._open: Append | None = None
        self._uncommitted: deque[Append] = deque()
        journal.watch(self._changed)

    def loaded(self) -> None:
        """The state is what the journal holds. Nobody hears of it before all of that is committed.

        A new leader knows what its log holds, but not yet that other replicas have it too.
        """
        if self._journal.committed_offset < self._journal.end_offset:
            recovered = Append()
            recovered.end_offset = self._journal.end_offset
            self._uncommitted.append(recovered)

    @property
    def is_ahead(self) -> bool:
        """Whether the state holds facts that are not committed."""
        return self._open is not None or bool(self._uncommitted)

    def write(
        self,
        decide: Callable[[M, int], Decision[R | Delayed]],
        failed: Callable[[ErrorCode], R],
        *,
        producer: TransactionalProducer | None = None,
        at_once: bool = False,
    ) -> R | Future[R]:
        """The reply of a decision: now if nothing has to be waited for, otherwise when it is committed or released.

        With a producer the facts are part of its transaction, or end it. `at_once` does not wait for others to share
        the append, so that a lone replica can reply now.
        """
        now_ms = self._clock.now_ms()
        decision = decide(self.machine, now_ms)
        error = self._take(decision, now_ms, producer)
        if error is TOO_LARGE and decision.otherwise is not None:
            decision = decision.otherwise(now_ms)
            error = self._take(decision, now_ms, producer)
        if error is not None:
            return failed(_HEARD_AS.get(error, error))
        if at_once:
            self._append()
            if self.is_stopped:
                return failed(ErrorCode.NOT_COORDINATOR)
        if decision.then is not None:
            future: Future[R] = self._loop.create_future()
            self._long_work.call(partial(self._go_on, decision.then, DelayedReply(future, failed)))
            return future
        return self._answer(decision, failed)

    def _take(self, decision: Decision[Any], now_ms: int, producer: TransactionalProducer | None) -> ErrorCode | None:
        """Put a decision's facts into the journal and the state; why not, if that can't be."""
        if decision.records:
            error = self._record(decision, now_ms, producer)
            if error is not None:
                return error
            for fact in decision.records:
                self.machine.apply(fact)
        self._set_timers(decision.timers, now_ms)
        return None

    def _go_on(self, then: Callable[[int], Decision[Any]], waiting: DelayedReply) -> None:
        """Decide the next part of something long, now that others had their turn."""
        if self.is_stopped:
            waiting.fail(ErrorCode.NOT_COORDINATOR)
            return
        now_ms = self._clock.now_ms()
        try:
            decision = then(now_ms)
            error = self._take(decision, now_ms, None)
        except Exception:
            LOGGER.exception("a long decision failed; what it decided so far stays")
            waiting.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        if error is not None:
            waiting.fail(_HEARD_AS.get(error, error))
        elif decision.then is not None:
            self._long_work.call(partial(self._go_on, decision.then, waiting))
        else:
            assert not isinstance(decision.reply, Delayed), "who works for long does not wait for others"
            self._hold(waiting, decision.reply)

    def _record(self, decision: Decision[Any], now_ms: int, producer: TransactionalProducer | None) -> ErrorCode | None:
        entries = [entry for fact in decision.records if (entry := self.machine.encode(fact)) is not None]
        if not entries:
            return None
        if (refusal := self._journal.refusal) is not None:
            return refusal
        size_bytes = _size_bytes(entries)
        if size_bytes + BATCH_OVERHEAD_BYTES > self._journal.entry_bytes_max:
            if not decision.is_whole:
                return self._enqueue_singly(entries)
            self._too_large.say(f"a decision of {size_bytes} bytes is too large for a batch")
            return TOO_LARGE
        if producer is not None:
            return self._append_for(producer, entries, now_ms)
        return self._enqueue(entries, size_bytes)

    def stop(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Write what is decided, and send everybody who still waits to the next coordinator."""
        if self._open is not None and error is ErrorCode.NOT_COORDINATOR and self._journal.is_ours:
            self._append()
        self._end(error)

    def _enqueue_singly(self, entries: Sequence[CoordinatorRecord]) -> ErrorCode | None:
        for entry in entries:
            error = self._enqueue((entry,), _size_bytes((entry,)))
            if error is not None:
                return error
        return None

    def _enqueue(self, entries: Sequence[CoordinatorRecord], size_bytes: int) -> ErrorCode | None:
        limit = min(self._journal.entry_bytes_max, APPEND_BYTES_MAX)
        if self._open is not None and self._open.size_bytes + size_bytes > limit:
            self._append()
            if self.is_stopped:
                return ErrorCode.NOT_COORDINATOR  # what is before these could not be written
        if self._open is None:
            self._open = Append()
            self._loop.call_soon(self._append)
        self._open.entries += entries
        self._open.size_bytes += size_bytes
        return None

    def _append_for(
        self, producer: TransactionalProducer, entries: Sequence[CoordinatorRecord], now_ms: int
    ) -> ErrorCode | None:
        """A batch of its own, at once: the log may refuse it for what it knows of the producer."""
        self._append()
        if self.is_stopped:
            return ErrorCode.NOT_COORDINATOR
        append = Append()
        try:
            self._journal.append(entries, now_ms, producer)
        except ApiError as wrong:
            return _HEARD_AS.get(wrong.code, wrong.code)
        append.end_offset = self._journal.end_offset
        self._uncommitted.append(append)
        self._release()
        return None

    def _append(self) -> None:
        append, self._open = self._open, None
        if append is None or self.is_stopped:
            return  # another append took them along
        self._uncommitted.append(append)
        try:
            self._journal.append(append.entries, self._clock.now_ms())
        except ApiError as wrong:
            self._unwritten.say(f"a coordinator's facts could not be written: {wrong}")
            self._fail(wrong.code)
            return
        except Exception:
            # A mistake of ours: this append would keep all replies behind it waiting for ever.
            LOGGER.exception("a coordinator's facts could not be written")
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        append.end_offset = self._journal.end_offset
        self._release()

    def _fail(self, error: ErrorCode) -> None:
        """The state holds facts that the journal does not, or may lose."""
        self._end(_HEARD_AS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR))
        if self._on_failed is not None:
            self._on_failed()

    def _release(self) -> None:
        committed = self._journal.committed_offset
        while self._uncommitted and 0 <= self._uncommitted[0].end_offset <= committed:
            for waiting, reply in self._uncommitted.popleft().replies:
                waiting.answer(reply)

    def _answer(self, decision: Decision[R | Delayed], failed: Callable[[ErrorCode], R]) -> R | Future[R]:
        reply = decision.reply
        result: R | Future[R]
        if isinstance(reply, Delayed):
            result = self._loop.create_future()
            earlier = self._delayed.get(reply.key)
            if earlier is not None:
                earlier.future.cancel()  # the same member asks again, over another connection
            self._delayed[reply.key] = DelayedReply(result, failed)
        else:
            result = self._when_committed(reply, failed)
        for released in decision.released:
            waiting = self._delayed.pop(released.key, None)
            if waiting is not None:
                self._hold(waiting, released.reply)
        return result

    def _when_committed(self, reply: R, failed: Callable[[ErrorCode], R]) -> R | Future[R]:
        if self._open is None and not self._uncommitted:
            return reply
        future: Future[R] = self._loop.create_future()
        self._hold(DelayedReply(future, failed), reply)
        return future

    def _hold(self, waiting: DelayedReply, reply: Any) -> None:
        """Answer when everything that was decided so far is committed."""
        last = self._open or (self._uncommitted[-1] if self._uncommitted else None)
        if last is None:
            waiting.answer(reply)
        else:
            last.replies.append((waiting, reply))

    def _set_timers(self, timers: Sequence[Timer], now_ms: int) -> None:
        for timer in timers:
            if timer.at_ms is None:
                self._timers.cancel(timer.key)
            elif not timer.is_kept or timer.key not in self._timers:
                self._timers.set(timer.key, timer.at_ms - now_ms)

    def _fire(self, key: Hashable) -> None:
        if self.is_stopped:
            return
        failed = partial(self._fire_again, key)
        try:
            self.write(lambda machine, now_ms: machine.decide_timer(key, now_ms), failed)
        except Exception:
            # A mistake of ours in one group must not keep the other timers of this moment from firing.
            LOGGER.exception("a timer's decision failed: %s", key)
            failed(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _fire_again(self, key: Hashable, _: ErrorCode) -> None:
        """The decision failed, or a later slice of it that would have set the timer anew: what is due stays due."""
        if not self.is_stopped:
            now_ms = self._clock.now_ms()
            self._set_timers((Timer(key, now_ms + TIMER_RETRY_MS, is_kept=True),), now_ms)

    def _changed(self) -> None:
        if self.is_stopped:
            return
        if not self._journal.is_ours:
            self._end(ErrorCode.NOT_COORDINATOR)
        elif self._journal.failure is not None:
            self._unwritten.say("a coordinator's facts could not be written to the disk")
            self._fail(self._journal.failure)
        elif self._uncommitted:
            self._release()

    def _end(self, error: ErrorCode) -> None:
        if self.is_stopped:
            return
        self.is_stopped = True
        self._journal.unwatch()
        self._timers.clear()
        appends = [*self._uncommitted, *([] if self._open is None else [self._open])]
        for append in appends:
            for waiting, _ in append.replies:
                waiting.fail(error)
        for waiting in self._delayed.values():
            waiting.fail(error)
        self._uncommitted.clear()
        self._open = None
        self._delayed.clear()


def unwritten_facts() -> RepeatedLine:
    return RepeatedLine(LOGGER, logging.ERROR)


def _size_bytes(entries: Sequence[CoordinatorRecord]) -> int:
    return sum([len(key) + len(value or b"") + ENTRY_OVERHEAD_BYTES for key, value in entries])
