"""Users of the cluster who come in at the same time."""

from __future__ import annotations

import asyncio

import pytest

from moldau.rest import sessions
from moldau.rest.sessions import Session, Sessions
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads


class SlowSession(Session):
    closed = 0

    async def cluster_id(self) -> str:
        await asyncio.sleep(0)
        return "c"

    def close(self) -> None:
        super().close()
        SlowSession.closed += 1


def test_a_user_who_comes_twice_at_once_has_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "Session", SlowSession)

    async def check() -> None:
        threads = Threads(consuming=1, streaming=1)
        found = Sessions(RestSettings(client={"bootstrap.servers": "127.0.0.1:1"}), threads)
        both = await asyncio.gather(*(found.passed_through("anna", "secret") for _ in range(2)))
        assert both[0] is both[1]
        assert SlowSession.closed == 1, "what nobody uses holds no connection"
        found.close()
        threads.close()

    asyncio.run(check())
