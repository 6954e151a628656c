"""Streams over a consumer that is late, or refused what it does not need."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError

from moldau.rest.consuming import stream
from moldau.rest.consuming.stream import RecordStream, Some, Wish
from moldau.rest.sessions import Session
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads
from moldau.web.errors import ApiError

WAIT_S_MAX = 10.0


class SlowConsumer:
    """Of librdkafka's, as far as it is used before its client goes."""

    begun, may_go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def __init__(self, _properties: object) -> None:
        self.begun.set()
        assert self.may_go_on.wait(WAIT_S_MAX)

    def subscribe(self, topics: list[str]) -> None:
        assert topics == ["t"]

    def close(self) -> None:
        self.closed.set()


def test_a_client_that_goes_while_its_consumer_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "Consumer", SlowConsumer)

    async def check() -> None:
        settings = RestSettings(client={"bootstrap.servers": "127.0.0.1:1"})
        threads = Threads(consuming=1, streaming=2)
        session = Session("anna", settings, settings.client, threads)
        coming = RecordStream(session, Wish(topic="t", starts={}, group="g"), lambda _: {}, settings).run()
        reading = asyncio.create_task(first_of(coming))
        assert await asyncio.to_thread(SlowConsumer.begun.wait, WAIT_S_MAX)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        SlowConsumer.may_go_on.set()
        assert await asyncio.to_thread(SlowConsumer.closed.wait, WAIT_S_MAX)
        session.close()
        threads.close()

    asyncio.run(check())


@dataclass(frozen=True, slots=True)
class Told:
    """An error among records."""

    code: int

    def error(self) -> KafkaError:
        return KafkaError(self.code)


@pytest.mark.parametrize("group", [None, "g"])
def test_who_reads_without_a_group_needs_no_right_to_one(monkeypatch: pytest.MonkeyPatch, group: str | None) -> None:
    class Refused:
        def __init__(self, _properties: object) -> None:
            self.coming = [Told(KafkaError.GROUP_AUTHORIZATION_FAILED), None]

        def assign(self, _places: object) -> None:
            pass

        def subscribe(self, _topics: object) -> None:
            pass

        def poll(self, _timeout_s: float) -> Told | None:
            return self.coming.pop(0)

        def close(self) -> None:
            pass

    monkeypatch.setattr(stream, "Consumer", Refused)

    async def check() -> Some:
        settings = RestSettings(client={"bootstrap.servers": "127.0.0.1:1"})
        threads = Threads(consuming=1, streaming=2)
        session = Session("anna", settings, settings.client, threads)
        try:
            coming = RecordStream(session, Wish(topic="t", starts={0: 0}, group=group), lambda _: {}, settings).run()
            async with aclosing(coming):
                return await first_of(coming)
        finally:
            session.close()
            threads.close()

    if group is None:
        assert asyncio.run(check()).records == []
        return
    with pytest.raises(ApiError) as refused:
        asyncio.run(check())
    assert refused.value.code == 40301


async def first_of(coming: AsyncGenerator[Some, None]) -> Some:
    return await anext(coming)
