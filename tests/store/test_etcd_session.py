"""Sessions of an etcd that answers what a test wants: between two of them, and with answers that are none."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.store.etcd.client import EtcdClient
from moldau.store.tree.client import Create
from moldau.store.tree.connect_string import ConnectString
from tests.store.kinds import run

SESSION_MS = 3_000
HELD: dict[str, Any] = {"result": {"TTL": "3"}}
ENDED: dict[str, Any] = {"result": {"TTL": "0"}}


class FakeEtcd:
    """`keepalives` are the answers to one request after the other, and then the session is held."""

    def __init__(self) -> None:
        self.keepalives: list[Any] = []
        self.sessions = 0
        self.leases: list[str] = []  # of nodes that were created
        self.connections: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                path = head.split(b" ", 2)[1].decode()
                answer = json.dumps(self._answer(path, json.loads(await reader.readexactly(length)))).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.connections.discard(writer)
        finally:
            writer.close()

    def _answer(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/v3/lease/grant":
            self.sessions += 1
            return {"ID": str(self.sessions)}
        if path == "/v3/lease/keepalive":
            return self.keepalives.pop(0) if self.keepalives else HELD
        if path == "/v3/kv/txn":
            self.leases += [each["request_put"]["lease"] for each in body["success"]]
            return {"succeeded": True}
        return {}


def with_client(test: Callable[[FakeEtcd, EtcdClient], Awaitable[None]]) -> None:
    async def go() -> None:
        etcd = FakeEtcd()
        server = await asyncio.start_server(etcd.serve, "127.0.0.1", 0)
        connect = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = EtcdClient(ConnectString.parse(connect, key="etcd.connect", port=1), session_timeout_ms=SESSION_MS)
        async with server:
            await client.start(SESSION_MS / 1000)
            try:
                await test(etcd, client)
            finally:
                await client.stop()
                while etcd.connections:  # noqa: ASYNC110 - each ends when it hears of it
                    await asyncio.sleep(0.01)

    run(go)


def test_a_node_that_goes_with_its_session_is_not_made_between_two_of_them() -> None:
    async def test(etcd: FakeEtcd, client: EtcdClient) -> None:
        ended = asyncio.Event()
        client.on_session_ended = ended.set
        etcd.keepalives = [ENDED]
        await ended.wait()
        await client.commit_once(Create("/brokers/ids/1", b"payload", ephemeral=True))
        assert (etcd.leases, client.session_id) == (["2"], 2)

    with_client(test)


def test_an_answer_that_is_none_does_not_end_the_keeping_of_a_session() -> None:
    async def test(etcd: FakeEtcd, client: EtcdClient) -> None:
        etcd.keepalives = [[], {"result": []}, {"result": {"TTL": base64.b64encode(b"three").decode()}}]
        while etcd.keepalives:  # noqa: ASYNC110 - the session is kept every half second
            await asyncio.sleep(0.01)
        before_s = client.prolonged_s
        while client.prolonged_s == before_s:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
        assert client.session_id == 1

    with_client(test)
