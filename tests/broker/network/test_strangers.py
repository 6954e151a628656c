"""Clients before their login: how long they may be, how many at a time, and what is logged of one that fails."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, cast

import pytest

from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener
from moldau.broker.network.secured import door
from moldau.broker.network.secured.door import SecuredDoor
from moldau.broker.network.secured.handshakes import ListenerTls
from moldau.broker.network.secured.strangers import Strangers
from moldau.broker.requests.dispatch import Dispatch
from moldau.broker.requests.logging_in import CHECKS_MAX, CLIENT_ID_BYTES_MAX, Checks, Logins
from moldau.core.clock import SystemClock
from moldau.security.sasl.login import LoginSettings
from moldau.security.sasl.plain import PlainServer
from moldau.security.tls.contexts import server_tls
from moldau.security.tls.principal_mapping import parse_mapping_rules
from moldau.wire.codec import encode_parts
from moldau.wire.frame import RequestHeader, request_parts
from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.security.tls.world import World, make_world

WAIT_S_MAX = 20.0
SOON_S = 0.2
REAUTHENTICATION_MS = 60_000
RENEWED_AFTER_S = 1.1  # sooner than a second after the last one, a login is refused
REQUEST = struct.pack(">ihhih", 10, 3, 0, 1, -1)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("tls"))


class Answering:
    def answer(self, *_: object) -> list[bytes]:
        return [b"ok"]


class Passwords:
    def lookup(self, user: str) -> str:
        return user


class Scene:
    """A listener, with TLS, logins or both."""

    def __init__(self, world: World, *, tls: bool, logins: bool, strangers: Strangers, in_thread: bool = False) -> None:
        self.writers: list[asyncio.StreamWriter] = []
        self.executor = ThreadPoolExecutor(1)
        loaded = server_tls(world.settings(world.server), now_s=world.now_s)
        settings = LoginSettings({"PLAIN": lambda: PlainServer(Passwords())}, {"PLAIN": REAUTHENTICATION_MS})
        self.checks = Checks(self.executor)
        in_threads = {"PLAIN": self.checks} if in_thread else {}
        self.logins = Logins(settings=settings, clock=SystemClock(), failure_delay_s=0, in_threads=in_threads)
        self.context = ssl.create_default_context(cadata=world.authority.certificate_pem().decode()) if tls else None
        self.listener = Listener("INSIDE")
        self.listener.bind("127.0.0.1", 0)
        self.listener.start(
            cast("Dispatch", Answering()),
            ConnectionLimits(idle_ms_max=600_000),
            FrameBudget(),
            ConnectionQuotas(),
            SecuredDoor(
                ListenerTls(loaded, parse_mapping_rules("DEFAULT"), self.executor, is_principal=True) if tls else None,
                self.logins if logins else None,
                strangers,
            ),
        )

    async def connected(self) -> Streams:
        name = None if self.context is None else "localhost"
        host, port = self.listener.host, self.listener.port
        streams = await asyncio.open_connection(host, port, ssl=self.context, server_hostname=name)
        self.writers.append(streams[1])
        return streams

    async def close(self) -> None:
        self.listener.close()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # in which they are
        self.executor.shutdown()

    async def logged_in(self, password: str = "alice", client_id: str = "tests") -> Streams:
        return await self.log_in(await self.connected(), password, client_id)

    async def log_in(self, streams: Streams, password: str = "alice", client_id: str = "tests") -> Streams:
        reader, writer = streams
        token = f"\0alice\0{password}".encode()
        for request, version in ((SaslHandshakeRequest("PLAIN"), 1), (SaslAuthenticateRequest(token), 1)):
            header = RequestHeader(request.API_KEY, version, 1, client_id)
            writer.write(b"".join(request_parts(header, encode_parts(request, version), is_flexible=False)))
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        return reader, writer


def played(scene: Callable[[], Scene], play: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        made = scene()
        try:
            async with asyncio.timeout(WAIT_S_MAX):
                await play(made)
        finally:
            await made.close()

    asyncio.run(run())


async def is_answered(streams: Streams) -> bool:
    streams[1].write(REQUEST)
    return await streams[0].read(2) == b"ok"


@pytest.mark.parametrize("tls", [False, True])
def test_who_does_not_log_in_is_given_up_and_who_did_stays(
    tls: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "LOGIN_S_MAX", SOON_S)

    async def play(scene: Scene) -> None:
        known = await scene.logged_in()
        silent = await scene.connected()
        assert await silent[0].read(1) == b""
        assert await is_answered(known)

    played(lambda: Scene(world, tls=tls, logins=True, strangers=Strangers()), play)


def test_of_logins_that_a_thread_checks_only_so_many_wait(world: World) -> None:
    async def play(scene: Scene) -> None:
        is_free = Event()
        scene.executor.submit(is_free.wait)
        waiting = [asyncio.ensure_future(scene.logged_in()) for _ in range(CHECKS_MAX)]
        while scene.checks.count < CHECKS_MAX:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.IncompleteReadError):
            await scene.logged_in()
        is_free.set()
        for streams in await asyncio.gather(*waiting):
            assert await is_answered(streams)
        assert scene.checks.count == 0

    played(lambda: Scene(world, tls=False, logins=True, strangers=Strangers(), in_thread=True), play)


def test_strangers_who_wait_keep_nobody_from_a_renewal(world: World) -> None:
    async def play(scene: Scene) -> None:
        known = await scene.logged_in()
        await asyncio.sleep(RENEWED_AFTER_S)
        scene.checks.count += CHECKS_MAX
        await scene.log_in(known)
        assert await is_answered(known)
        with pytest.raises(asyncio.IncompleteReadError):
            await scene.logged_in()

    played(lambda: Scene(world, tls=False, logins=True, strangers=Strangers(), in_thread=True), play)


def test_who_need_not_log_in_is_no_stranger(world: World) -> None:
    async def play(scene: Scene) -> None:
        several = []
        for _ in range(3):
            several.append(await scene.connected())
            assert await is_answered(several[-1])
        assert all([await is_answered(each) for each in several])

    played(lambda: Scene(world, tls=True, logins=False, strangers=Strangers(descriptors=2)), play)


@pytest.mark.parametrize("tls", [False, True])
def test_of_too_many_strangers_the_first_goes(tls: bool, world: World) -> None:
    async def play(scene: Scene) -> None:
        known = [await scene.logged_in() for _ in range(4)]
        first, *others = [await scene.connected() for _ in range(4)]
        assert await first[0].read(1) == b""
        for each in known:
            assert await is_answered(each)
        assert not any(reader.at_eof() for reader, _ in others)

    played(lambda: Scene(world, tls=tls, logins=True, strangers=Strangers(descriptors=6)), play)


def test_a_handshake_that_stalls_is_a_stranger(world: World) -> None:
    async def play(scene: Scene) -> None:
        shakes, scene.context = scene.context, None
        stalled = [await scene.connected() for _ in range(4)]
        scene.context = shakes
        assert await stalled[0][0].read(1) == b""
        assert await is_answered(await scene.connected())

    played(lambda: Scene(world, tls=True, logins=False, strangers=Strangers(descriptors=6)), play)


def test_a_failed_login_is_logged_with_what_finds_the_client(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def play(scene: Scene) -> None:
        reader, _ = await scene.logged_in("wrong", "billing\n" + "x" * 1_000)
        assert await reader.read() == b""

    played(lambda: Scene(world, tls=False, logins=True, strangers=Strangers()), play)
    (line,) = [each for each in caplog.messages if "Invalid username or password" in each]
    shown = "billing\\n" + "x" * (CLIENT_ID_BYTES_MAX - len("billing\n"))
    assert line.endswith(f"Invalid username or password (SASL mechanism PLAIN, client id '{shown}')")
    assert "alice" not in line
