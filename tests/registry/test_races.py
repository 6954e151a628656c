"""What becomes of a request while it waits for a thread."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import Any

import pytest

from moldau.registry.checking import LARGE_AT_ONCE, SMALL_AT_ONCE
from moldau.registry.deciding.deleting import decide_version_deletion
from moldau.registry.forwarding import THREADS, Forwarder, Question
from moldau.registry.serving.api import Api
from moldau.registry.serving.application import registry_application
from moldau.registry.storing.electing import Identity
from moldau.web.application import Surroundings
from tests.registry.test_faults import leading, registered, until

pytestmark = pytest.mark.xdist_group("registry")


class Slow:
    """A schema whose text takes until somebody says so."""

    def __init__(self) -> None:
        self.is_over = threading.Event()

    @property
    def canonical(self) -> str:
        assert self.is_over.wait(60)
        return ""


async def posted(app: Any, path: str, body: object) -> tuple[int, int]:
    """The status and the error's code."""
    sent: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])["error_code"]


def test_a_schema_that_is_deleted_meanwhile_is_not_referred_to(bootstrap: str) -> None:
    async def check() -> None:
        async with leading(bootstrap) as registry:
            await registered(registry, 1)
            slow: Any = Slow()
            checker, api = registry.checker, Api(registry)
            busy = [asyncio.create_task(checker.canonical(slow)) for _ in range(LARGE_AT_ONCE + SMALL_AT_ONCE)]
            app = registry_application(api, Surroundings(name="registry", expose=lambda _: None))
            body = {"schema": '"F1"', "references": [{"name": "F1", "subject": "s1", "version": 1}]}
            asked = asyncio.create_task(posted(app, "/subjects/referring/versions", body))
            await until(checker._threads._work_queue.qsize)
            for is_permanent in (False, True):
                await registry.write(
                    lambda state, is_permanent=is_permanent: decide_version_deletion(  # type: ignore[misc]
                        state, "s1", 1, is_permanent=is_permanent
                    )
                )
            slow.is_over.set()
            status, code = await asked
            await asyncio.gather(*busy)
            api.forwarder.close()
            assert (status, code) == (422, 42_201)
            assert "referring" not in registry.state.subjects

    asyncio.run(check())


def test_what_waits_to_be_forwarded_is_forgotten_with_its_leader() -> None:
    """Sent later, to a leader that came back, it would undo what was written since."""

    async def check() -> None:
        forwarder, over = Forwarder(), asyncio.Event()
        with socket.create_server(("127.0.0.1", 0), backlog=THREADS * 2) as server:
            leader = Identity("127.0.0.1", server.getsockname()[1])

            def ask(number: int, is_over: Any) -> asyncio.Task[Any]:
                question = Question("PUT", f"/{number}", {}, b"", "_schemas")
                return asyncio.create_task(forwarder.ask(leader, question, is_over))

            held = [ask(number, over.wait()) for number in range(THREADS)]
            accepted = [(await asyncio.to_thread(server.accept))[0] for _ in held]
            assert await ask(THREADS, asyncio.sleep(0)) is None, "its leader was lost"
            over.set()
            assert await asyncio.gather(*held) == [None] * THREADS
            for each in accepted:
                each.close()
            await asyncio.to_thread(forwarder._threads.shutdown)
            server.settimeout(0.2)
            with pytest.raises(TimeoutError):
                server.accept()
        forwarder.close()

    asyncio.run(check())
