"""Whose requests those of a secured connection are."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Event
from typing import Any, cast

import pytest

from moldau.broker.context import Peer
from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener
from moldau.broker.network.secured import handshakes
from moldau.broker.network.secured.door import SecuredDoor
from moldau.broker.network.secured.handshakes import ListenerTls
from moldau.broker.requests.dispatch import Dispatch
from moldau.security.tls.contexts import server_tls
from moldau.security.tls.principal_mapping import parse_mapping_rules
from tests.security.tls.world import World, make_world

WAIT_S_MAX = 20.0
LIMITS = ConnectionLimits(idle_ms_max=600_000)
Come = Callable[[bytes], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
REQUEST = struct.pack(">ihhih", 10, 3, 0, 1, -1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("tls"))


class Recorder:
    """Answers every request with two bytes, and remembers who asked."""

    def __init__(self) -> None:
        self.peers: list[Peer] = []

    def answer(self, _: memoryview, peer: Peer) -> list[bytes]:
        self.peers.append(peer)
        return [b"ok"]


async def asked_over_tls(world: World, *, rules: str, auth: str, shows: bool) -> tuple[list[Peer], bytes]:
    executor = ThreadPoolExecutor(1)
    loaded = server_tls(world.settings(world.server, client_auth=auth), now_s=world.now_s)
    tls = ListenerTls(loaded, parse_mapping_rules(rules), executor, is_principal=True)
    listener, recorder = Listener("SSL"), Recorder()
    listener.bind("127.0.0.1", 0)
    quotas = ConnectionQuotas()
    listener.start(cast("Dispatch", recorder), LIMITS, FrameBudget(), quotas, SecuredDoor(tls, None))
    context = ssl.create_default_context(cadata=world.authority.certificate_pem().decode())
    if shows:
        show(context, world)
    answer = b""
    try:
        reader, writer = await asyncio.open_connection(
            listener.host, listener.port, ssl=context, server_hostname="localhost"
        )
        writer.write(REQUEST)
        answer = await reader.read(2)
        writer.close()
    except OSError:
        pass
    await until(lambda: not listener._connections)
    listener.close()
    executor.shutdown()
    assert not tls.under_way
    return recorder.peers, answer


def show(context: ssl.SSLContext, world: World) -> None:
    path = world.folder / "shown.pem"
    path.write_bytes(world.client.key_pem() + world.client.certificate_pem())
    context.load_cert_chain(path)


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S_MAX):
        while not is_so():  # noqa: ASYNC110 - the listener's turn comes with the loop's
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("rules", "auth", "shows", "principal"),
    [
        ("DEFAULT", "required", True, "User:CN=alice"),
        ("RULE:^CN=(.*)$/$1/U", "requested", True, "User:ALICE"),
        ("DEFAULT", "requested", False, "User:ANONYMOUS"),
        ("DEFAULT", "none", True, "User:ANONYMOUS"),
    ],
)
def test_a_certificate_says_who_asks(rules: str, auth: str, shows: bool, principal: str, world: World) -> None:
    peers, answer = asyncio.run(asked_over_tls(world, rules=rules, auth=auth, shows=shows))
    assert answer == b"ok"
    assert [str(peer.principal) for peer in peers] == [principal]


@pytest.mark.parametrize(
    ("rules", "auth", "shows"), [("DEFAULT", "required", False), ("RULE:^x$/x/", "required", True)]
)
def test_a_client_without_a_name_is_not_answered(rules: str, auth: str, shows: bool, world: World) -> None:
    assert asyncio.run(asked_over_tls(world, rules=rules, auth=auth, shows=shows)) == ([], b"")


def listening(world: World, executor: ThreadPoolExecutor) -> tuple[ListenerTls, Listener]:
    loaded = server_tls(world.settings(world.server), now_s=world.now_s)
    tls = ListenerTls(loaded, parse_mapping_rules("DEFAULT"), executor, is_principal=True)
    listener = Listener("SSL")
    listener.bind("127.0.0.1", 0)
    listener.start(cast("Dispatch", Recorder()), LIMITS, FrameBudget(), ConnectionQuotas(), SecuredDoor(tls, None))
    return tls, listener


def port_of(client: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> int:
    port: int = client[1].get_extra_info("sockname")[1]
    return port


def test_a_handshake_that_takes_too_long_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKE_S_MAX", 0.2)

    async def test() -> None:
        executor = ThreadPoolExecutor(1)
        tls, listener = listening(world, executor)
        (reader, silent) = await asyncio.open_connection(listener.host, listener.port)
        (other, begun) = await asyncio.open_connection(listener.host, listener.port)
        begun.write(b"\x16\x03\x01")
        assert await reader.read(1) == b""
        assert await other.read(1) == b""
        assert not listener._connections
        assert not tls.under_way
        for writer in (silent, begun):
            writer.transport.abort()
        listener.close()
        executor.shutdown()

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_who_has_waited_longest_is_given_up_for_a_new_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not who came first, whose first step was just computed."""
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 2)

    async def test() -> None:
        async with crowded(world) as (tls, come, executor):
            first, second = await come(b""), await come(b"")
            first[1].write(b"\x16")  # it says something, and waits again, now behind the second
            await until(lambda: next(iter(tls.waiting)).peer.port == port_of(second))
            third = await come(b"")
            assert await second[0].read(1) == b""
            assert tls.under_way == 2
            assert {each.peer.port for each in tls.waiting} == {port_of(first), port_of(third)}
            assert executor._work_queue.qsize() == 0

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_nobody_who_waits_for_a_thread_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """New ones are hung up on: else no handshake would be complete while hellos come faster than they are computed."""
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 1)

    async def test() -> None:
        async with crowded(world) as (tls, come, executor):
            is_free = Event()
            executor.submit(is_free.wait)
            try:
                patient = await come(b"\x16")
                await until(lambda: executor._work_queue.qsize() == 1)
                for _ in range(4):
                    late, _ = await come(b"")
                    assert await late.read(1) == b""
                assert tls.under_way == 1
            finally:
                is_free.set()
            await until(lambda: tls.waiting)
            assert next(iter(tls.waiting)).peer.port == port_of(patient)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


@asynccontextmanager
async def crowded(world: World) -> AsyncIterator[tuple[ListenerTls, Come, ThreadPoolExecutor]]:
    """A listener, and how a client comes to it that says so much."""
    executor = ThreadPoolExecutor(1)
    tls, listener = listening(world, executor)
    crowd = []

    async def come(first_words: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        crowd.append(await asyncio.open_connection(listener.host, listener.port))
        crowd[-1][1].write(first_words)
        port = port_of(crowd[-1])
        await until(lambda: port in accepted)
        return crowd[-1]

    accepted: set[int] = set()
    begin = tls.begin

    def noted(handshake: handshakes.Handshake) -> None:
        accepted.add(handshake.peer.port)
        begin(handshake)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListenerTls, "begin", lambda _, handshake: noted(handshake))
        try:
            yield tls, come, executor
        finally:
            for _, writer in crowd:
                writer.transport.abort()
            listener.close()
            executor.shutdown()
