"""A store that fails with what nobody expects of it: a node that somebody removed, an answer that makes no sense."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moldau.controller import runtime
from moldau.controller.image import BrokerImage
from moldau.controller.runtime import Controller
from moldau.core.errors import ApiError, ErrorCode
from moldau.store.sqlite import SqliteStore
from moldau.store.store import Tail
from moldau.store.tree.client import NoNode
from tests.controller.clusters import ENDPOINTS
from tests.controller.test_runtime import controlling, create, register, run, until


class FailingStore:
    """The store of a test, with failures to come of what is read and appended."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.reads = self.appends = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def read(self, position: int) -> Tail:
        self.reads -= 1
        if self.reads >= 0:
            raise NoNode("/moldau/head")
        return await self.store.read(position)

    async def append(self, payload: bytes, **options: Any) -> int:
        """What was written is there, whatever is said of it."""
        position = await self.store.append(payload, **options)
        self.appends -= 1
        if self.appends >= 0:
            raise NoNode("/moldau/head")
        return position


def test_every_decision_is_answered_and_the_next_one_knows_what_was_written(tmp_path: Path) -> None:
    async def test() -> None:
        store = FailingStore(await SqliteStore.open(tmp_path / "store.db"))
        controller = await Controller.open(store, 1, cluster_id="cluster")
        await register(controller, BrokerImage(1, ENDPOINTS))
        store.appends = store.reads = 1
        for name in ("a", "b"):
            with pytest.raises(ApiError) as unknown:
                await asyncio.wait_for(create(controller, name), 10)
            assert unknown.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        (again,) = await create(controller, "a")
        assert again.error is ErrorCode.TOPIC_ALREADY_EXISTS
        await controller.close()
        await store.close()

    run(test)


def test_a_broker_goes_on_following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "STORE_RETRY_MS", 10)

    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path) as first:
            store = FailingStore(await SqliteStore.open(path))
            second = await Controller.open(store, 2, cluster_id="cluster")
            store.reads = 1
            await create(first, "a")
            await until(lambda: "a" in second.image.topics)
            await second.close()
            await store.close()

    run(test)
