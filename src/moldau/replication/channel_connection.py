"""One connection to another broker: frames out, frames in, and who waits for which.

A large response is received where it stays: its buffer is made when its size is known, and the socket is read into it.
Small ones come several at a time into a buffer of the connection, and each is copied out of it.
"""

from __future__ import annotations

import asyncio
from asyncio import BufferedProtocol, Future
from collections import deque
from typing import Any, cast

from moldau.core.limits import KIB
from moldau.wire.frame import SIZE_BYTES

SMALL_BYTES = 16 * KIB  # of the buffer for what is small; most responses have a few hundred
CORRELATION_BYTES = 4


class ChannelError(Exception):
    """There is no answer, and there may never have been a question at the other end."""


class Unreachable(ChannelError):
    """The broker's port refused, or the connection broke: evidence that the process is gone."""


class TimedOut(ChannelError):
    """Nothing was heard in time, which says nothing about the process: it may be busy, or the network between."""


class AuthenticationFailed(ChannelError):
    """The two ends do not trust each other. The process at the other end lives, or nobody could have said so."""


class Connection(BufferedProtocol):
    """Answers come in the order of the questions, by their correlation ids."""

    __slots__ = (
        "_at",
        "_broker_id",
        "_failure",
        "_frame",
        "_held",
        "_pending",
        "_small",
        "_transport",
        "_writable",
        "is_lost",
        "response_bytes_max",
    )

    def __init__(self, broker_id: int, response_bytes_max: int) -> None:
        loop = asyncio.get_running_loop()
        self.is_lost: Future[bool] = loop.create_future()
        """Done when the connection is; True if that is evidence of a process that is gone."""
        self._broker_id = broker_id
        self.response_bytes_max = response_bytes_max
        self._pending: deque[tuple[int, Future[memoryview]]] = deque()
        self._failure: ChannelError | None = None
        self._transport: asyncio.Transport | None = None
        self._writable: Future[None] | None = None  # while the other end does not read as fast as we write
        self._held: Future[None] | None = None  # while this end logs in again
        self._small = memoryview(bytearray(SMALL_BYTES))
        self._frame: memoryview | None = None  # a large response that has begun
        self._at = 0  # how much was received of it, or of what is in the buffer for small ones

    @property
    def is_usable(self) -> bool:
        """False from the moment that it failed, which its end follows."""
        return self._failure is None

    async def writable(self) -> None:
        while (waited := self._writable or self._held) is not None and self._failure is None:
            await asyncio.shield(waited)

    def hold(self) -> None:
        """Nothing but what comes by `send` goes out until `release`: a broker takes no other request in a login."""
        assert self._held is None, "one login at a time"
        self._held = asyncio.get_running_loop().create_future()

    def release(self) -> None:
        if self._held is not None:
            self._held.set_result(None)
            self._held = None

    def send(self, parts: list[Any], correlation_id: int) -> Future[memoryview]:
        """The frame that answers, without its size. It has memory of its own."""
        answer: Future[memoryview] = asyncio.get_running_loop().create_future()
        if self._failure is not None or self._transport is None:
            answer.set_exception(self._failure or Unreachable(f"the connection to broker {self._broker_id} is lost"))
            return answer
        self._pending.append((correlation_id, answer))
        self._transport.writelines(parts)
        return answer

    def fail(self, reason: ChannelError) -> None:
        """End the connection; who waits is told why."""
        if self._failure is None:
            self._failure = reason
            self._fail_pending(reason)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        is_evidence = False
        if self._failure is None:
            self._failure, is_evidence = self._cause(exc)
        self._fail_pending(self._failure)
        self.resume_writing()
        self.release()
        self.is_lost.set_result(is_evidence)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return (self._small if self._frame is None else self._frame)[self._at :]

    def buffer_updated(self, nbytes: int) -> None:
        self._at += nbytes
        if self._frame is None:
            self._cut()
        elif self._at == len(self._frame):
            frame, self._frame, self._at = self._frame, None, 0
            self._received(frame)

    def _cause(self, exc: Exception | None) -> tuple[ChannelError, bool]:
        if exc is None or isinstance(exc, ConnectionError):
            # A broker that closes a connection which nobody used for long says nothing about itself.
            is_evidence = exc is not None or bool(self._pending)
            why = exc or "it closed the connection"
            return Unreachable(f"broker {self._broker_id} is gone: {why}"), is_evidence
        return ChannelError(f"the connection to broker {self._broker_id} is lost: {exc}"), False

    def _fail_pending(self, reason: ChannelError) -> None:
        pending, self._pending = self._pending, deque()
        for _, answer in pending:
            if not answer.done():
                answer.set_exception(reason)

    def _cut(self) -> None:
        """Hand out what is complete in the buffer for small responses, and begin a large one in memory of its own."""
        at, end, small = 0, self._at, self._small
        while end - at >= SIZE_BYTES and self._failure is None:
            size = int.from_bytes(small[at : at + SIZE_BYTES], "big", signed=True)
            if not CORRELATION_BYTES <= size <= self.response_bytes_max:
                self.fail(ChannelError(f"broker {self._broker_id} sent a frame of {size} bytes"))
                return
            begin = at + SIZE_BYTES
            if begin + size <= end:
                at = begin + size
                self._received(memoryview(bytes(small[begin:at])))
            elif size > SMALL_BYTES - SIZE_BYTES:
                self._frame = memoryview(bytearray(size))
                self._at = end - begin
                self._frame[: self._at] = small[begin:end]
                return
            else:
                break
        self._at = end - at
        small[: self._at] = small[at:end]

    def _received(self, frame: memoryview) -> None:
        expected, answer = self._pending.popleft() if self._pending else (None, None)
        correlation_id = int.from_bytes(frame[:CORRELATION_BYTES], "big", signed=True)
        if answer is None or correlation_id != expected:
            wrong = ChannelError(f"broker {self._broker_id} answered question {correlation_id}, not {expected}")
            if answer is not None and not answer.done():
                answer.set_exception(wrong)
            self.fail(wrong)
        elif not answer.done():  # whoever asked may have given up
            answer.set_result(frame)
