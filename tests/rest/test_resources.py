"""Resources of v3 and their links, without a cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from starlette.requests import Request

from moldau.rest.calls import Call, Json
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads
from moldau.rest.v3.resources import Resources


def test_long_lists_are_made_beside_the_event_loop() -> None:
    """Configurations of a thousand topics take a second, in which nobody else would be answered."""
    threads = Threads(consuming=1, streaming=1)
    proxy: Any = SimpleNamespace(settings=RestSettings(client={}), threads=threads)
    scope = {"type": "http", "headers": [(b"host", b"proxy:8082")], "scheme": "http", "server": ("127.0.0.1", 1)}
    session: Any = None
    found = Resources(Call(Request(scope), proxy, session), "c/1")
    makers: list[threading.Thread] = []

    def data() -> Iterator[Json]:
        makers.append(threading.current_thread())
        yield found.resource("KafkaTopic", ("topics", "a b"), ("topic", "a b"))

    async def check() -> bytes:
        return bytes((await found.listed("KafkaTopicList", ("topics",), data)).body)

    content = asyncio.run(check())
    threads.close()
    assert makers != [threading.current_thread()]
    assert b'"self":"http://proxy:8082/v3/clusters/c%2F1/topics/a%20b"' in content
