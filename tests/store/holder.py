"""A broker of a test in a process of its own: it registers, is elected, and does what it is told, line by line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moldau.store.store import Fenced, MetadataStore, Registration, StoreError
from tests.store.kinds import SESSION_TIMEOUT_MS, open_store

PROJECT = Path(__file__).parents[2]


class Holder:
    """The test's end of it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    def tell(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words).encode() + b"\n")

    async def hear(self, *wanted: str) -> dict[str, Any]:
        """What it says about these things, in any order; what it says about others is passed over."""
        assert self._process.stdout is not None
        heard: dict[str, Any] = {}
        while not heard.keys() >= set(wanted):
            line = await self._process.stdout.readline()
            said = json.loads(line or '{"wrong": "the process ended"}')
            assert "wrong" not in said, said
            heard |= said
        return {each: heard[each] for each in wanted}

    async def ask(self, *words: str) -> Any:
        self.tell(*words)
        return (await self.hear(words[0]))[words[0]]

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def holding(
    spec: str,
    broker_id: int,
    *,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Holder]:
    """A process that has opened the store; it is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.holder", spec, str(broker_id), str(session_timeout_ms),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    holder = Holder(process)
    try:
        await holder.hear("opened")
        yield holder
    finally:
        if process.returncode is None:
            await holder.kill()


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


class Obedient:
    def __init__(self, store: MetadataStore, broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id
        self._epoch = 0

    async def register(self, payload: str) -> str:
        await self._store.register(Registration(self._broker_id, payload.encode()))
        return payload

    async def elect(self) -> list[int]:
        leadership = await self._store.elect(self._broker_id)
        if leadership.broker_id == self._broker_id:
            self._epoch = leadership.epoch
        return [leadership.broker_id, leadership.epoch]

    async def append(self, text: str) -> int | str:
        """As whom it was elected, however long ago."""
        try:
            return await self._store.append(text.encode(), controller_epoch=self._epoch)
        except Fenced:
            return "fenced"

    async def time(self) -> float:
        return time.time()


async def obey(spec: str, broker_id: int, session_timeout_ms: int) -> None:
    store = await open_store(spec, session_timeout_ms=session_timeout_ms)
    store.on_session_lost = lambda: say(lost=broker_id)
    obedient = Obedient(store, broker_id)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say(opened=True)
    while line := await reader.readline():
        name, *words = line.decode().split()
        try:
            say(**{name: await getattr(obedient, name)(*words)})
        except StoreError as wrong:
            say(wrong=str(wrong))
    await store.close()


if __name__ == "__main__":
    asyncio.run(obey(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
