"""Threads for what blocks: questions to the cluster, consumers, streams. Each kind waits for its own only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from moldau.web.trimming import Trimming

T = TypeVar("T")

ASKING_MAX = 32


class Threads:
    def __init__(self, *, consuming: int, streaming: int) -> None:
        self.trimming = Trimming()
        self.asking = ThreadPoolExecutor(ASKING_MAX, "ask")
        self.consuming = ThreadPoolExecutor(consuming, "consume")
        self.streaming = ThreadPoolExecutor(streaming, "stream")

    def close(self) -> None:
        for each in (self.asking, self.consuming, self.streaming):
            each.shutdown(wait=False, cancel_futures=True)


async def in_thread(pool: ThreadPoolExecutor, do: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, do)
