"""Channels over TLS and SASL: who is let in, what is told of who is not, and sessions that are renewed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from moldau.embedded.process import Address
from moldau.replication.channel import AuthenticationFailed, BrokerChannel, ChannelError
from moldau.replication.channel_connection import Unreachable
from moldau.replication.channel_security import ChannelSecurity
from moldau.security.sasl.client_login import ClientCredentials, LoginFailed
from moldau.security.sasl.login import LoginSettings
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.server import ScramServer
from moldau.security.tls.contexts import LoadedTls, client_tls, server_tls
from moldau.security.tls.issuing import new_authority, new_server
from moldau.wire.messages import MetadataRequest
from tests.coordinator.loops import on_a_brokers_loop
from tests.replication.test_channel import peer
from tests.security.sasl.exchanges import FAKES, Credentials
from tests.security.sasl.login_server import LoginServer
from tests.security.sasl.test_client_login import credentials
from tests.security.sasl.test_plain import Passwords
from tests.security.tls.world import World

BROKER = 7
METADATA = 12
TIMEOUT_MS = 15_000
LOGINS = LoginSettings(
    {
        "PLAIN": lambda: PlainServer(Passwords()),
        "SCRAM-SHA-512": lambda: ScramServer(ScramMechanism.SHA_512, Credentials(), FAKES, "nonce"),
    }
)
BRIEF_MS = 2_000  # of a session; a broker lets nobody renew one twice in a second


class Channel:
    """A channel, and what was told of brokers that are gone."""

    def __init__(self, server: LoginServer, security: ChannelSecurity, host: str = "127.0.0.1") -> None:
        self.told: list[int] = []
        address = Address(host, server.port)
        self._channel = BrokerChannel(
            BROKER, lambda _: address, client_id="broker-1", on_unreachable=self.told.append, security=security
        )

    async def ask(self, timeout_ms: int = TIMEOUT_MS) -> Any:
        return await self._channel.ask(MetadataRequest(topics=[]), METADATA, timeout_ms=timeout_ms)

    async def close(self) -> None:
        await self._channel.close()


@asynccontextmanager
async def channel_to(server: LoginServer, security: ChannelSecurity, host: str = "127.0.0.1") -> AsyncIterator[Channel]:
    channel = Channel(server, security, host)
    try:
        yield channel
    finally:
        await channel.close()


def secured(
    tls: LoadedTls | None = None, who: ClientCredentials | None = None, *, chance: float = 0.0
) -> ChannelSecurity:
    return ChannelSecurity(
        tls=None if tls is None else lambda: tls,
        credentials=None if who is None else lambda: who,
        client_id="broker-1",
        chance=lambda: chance,
    )


def client_of(world: World, **others: Any) -> LoadedTls:
    return client_tls(world.settings(world.client, **others), now_s=world.now_s)


def server_of(world: World, **others: Any) -> Any:
    return server_tls(world.settings(world.server, **others), now_s=world.now_s).context


@on_a_brokers_loop
async def test_a_channel_over_tls_asks_a_broker_whose_name_and_authority_are_right(world: World) -> None:
    """With an answer that is received where it stays."""
    with LoginServer(None, context=server_of(world), cluster_id="x" * 32_000) as server:
        async with channel_to(server, secured(client_of(world)), host="localhost") as channel:
            answers = await asyncio.gather(*(channel.ask() for _ in range(20)))
    assert {len(answer.cluster_id) for answer in answers} == {32_000}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("has_tls", [False, True], ids=["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_channel_logs_in_before_it_asks(world: World, mechanism: str, has_tls: bool) -> None:
    @on_a_brokers_loop
    async def scenario() -> None:
        with LoginServer(LOGINS, context=server_of(world) if has_tls else None) as server:
            security = secured(client_of(world) if has_tls else None, credentials(mechanism))
            async with channel_to(server, security) as channel:
                await channel.ask()
            assert [each.name for each in server.principals] == ["alice"]

    scenario()


@on_a_brokers_loop
async def test_a_failed_login_is_told_in_words_and_says_nothing_about_the_process() -> None:
    with LoginServer(LOGINS) as server:
        async with channel_to(server, secured(who=credentials("PLAIN", password="not-the-one"))) as channel:
            for _ in range(2):  # and it is tried again
                with pytest.raises(AuthenticationFailed) as failed:
                    await channel.ask()
        assert str(failed.value) == (
            "broker 7 can't be reached: SASL PLAIN: Authentication failed: Invalid username or password"
        )
        assert server.connections == 2
    assert channel.told == []


@on_a_brokers_loop
async def test_a_certificate_for_another_host_is_refused_unless_names_are_not_looked_at(world: World) -> None:
    elsewhere = new_server(world.authority, hosts=["elsewhere.example"], now=datetime.now(UTC))
    context = server_tls(world.settings(elsewhere), now_s=world.now_s).context
    with LoginServer(None, context=context) as server:
        async with channel_to(server, secured(client_of(world))) as channel:
            with pytest.raises(AuthenticationFailed, match="IP address mismatch"):
                await channel.ask()
        assert channel.told == []
        lax = client_of(world, endpoint_identification_algorithm="")
        async with channel_to(server, secured(lax)) as channel:
            assert (await channel.ask()).cluster_id == "logins"


@on_a_brokers_loop
async def test_a_certificate_of_another_authority_is_refused(world: World) -> None:
    other = new_authority(name="Other CA", now=datetime.now(UTC)).certificate_pem().decode()
    with LoginServer(None, context=server_of(world)) as server:
        async with channel_to(server, secured(client_of(world, truststore_certificates=other))) as channel:
            with pytest.raises(AuthenticationFailed, match="TLS: its certificate is not accepted"):
                await channel.ask()
    assert channel.told == []


@on_a_brokers_loop
async def test_a_plain_listener_is_told_from_one_with_tls(world: World) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with peer(babble) as address:
        told: list[int] = []
        channel = BrokerChannel(
            BROKER, lambda _: address, client_id="b", on_unreachable=told.append, security=secured(client_of(world))
        )
        with pytest.raises(AuthenticationFailed, match="is no TLS; is its listener PLAINTEXT"):
            await channel.ask(MetadataRequest(topics=[]), METADATA, timeout_ms=TIMEOUT_MS)
        await channel.close()
    assert told == []


@on_a_brokers_loop
async def test_a_missing_client_certificate_says_nothing_about_the_process(world: World) -> None:
    """With TLS 1.3 the server's alert comes when the client takes the handshake for complete."""
    bare = client_tls(world.settings(None), now_s=world.now_s)
    with LoginServer(None, context=server_of(world, client_auth="required")) as server:
        async with channel_to(server, secured(bare)) as channel:
            with pytest.raises(ChannelError, match=r"(?i)certificate required"):
                await channel.ask()
    assert channel.told == []


@on_a_brokers_loop
async def test_a_broker_that_dies_under_a_question_is_told_over_tls_too(world: World) -> None:
    with LoginServer(LOGINS, context=server_of(world)) as server:
        async with channel_to(server, secured(client_of(world), credentials("PLAIN"))) as channel:
            await channel.ask()
            server.is_silent.set()
            asked = asyncio.ensure_future(channel.ask())
            await asyncio.to_thread(server.asked.wait, 10)
            server.hang_up()
            with pytest.raises(ChannelError):
                await asked
            assert channel.told == [BROKER]


@on_a_brokers_loop
async def test_a_session_is_renewed_before_it_ends_while_questions_go_on() -> None:
    brief = replace(LOGINS, connections_max_reauth_ms={"SCRAM-SHA-512": BRIEF_MS})
    with LoginServer(brief) as server:
        async with channel_to(server, secured(who=credentials("SCRAM-SHA-512"))) as channel:
            while not server.reauthenticated.is_set():
                await asyncio.gather(*(channel.ask() for _ in range(3)))
            await channel.ask()
        assert server.connections == 1
        assert server.failures == []
    assert channel.told == []


async def asking_on(channel: Channel) -> None:
    """On a busy machine the server may end a session before it is renewed: then the next question logs in anew."""
    while True:
        with suppress(Unreachable):
            await channel.ask()


@on_a_brokers_loop
async def test_a_session_that_can_not_be_renewed_ends_its_connection() -> None:
    who = [credentials("PLAIN"), credentials("PLAIN", password="changed")]
    security = ChannelSecurity(
        tls=None, credentials=lambda: who.pop(0) if len(who) > 1 else who[0], client_id="b", chance=lambda: 0.0
    )
    with LoginServer(replace(LOGINS, connections_max_reauth_ms={"PLAIN": BRIEF_MS})) as server:
        async with channel_to(server, security) as channel:
            await channel.ask()
            with pytest.raises(AuthenticationFailed):
                await asking_on(channel)
    assert channel.told == []


@pytest.mark.parametrize("logins_before", [0, 1])
def test_credentials_that_became_wrong_end_a_login_and_a_connection(logins_before: int) -> None:
    """What a broker logs in with is read for each login, and may have been changed to what nobody can use."""
    given = [credentials("PLAIN")] * logins_before

    def current() -> ClientCredentials:
        if not given:
            raise LoginFailed("the user that brokers log in with is not set")
        return given.pop()

    @on_a_brokers_loop
    async def scenario() -> None:
        security = ChannelSecurity(tls=None, credentials=current, client_id="b", chance=lambda: 0.0)
        with LoginServer(replace(LOGINS, connections_max_reauth_ms={"PLAIN": BRIEF_MS})) as server:
            async with channel_to(server, security) as channel:
                with pytest.raises(AuthenticationFailed, match="is not set"):
                    await asyncio.wait_for(asking_on(channel), 3 * BRIEF_MS / 1_000)

    scenario()


def test_a_plain_channel_loads_nothing_of_tls_and_sasl() -> None:
    code = "import moldau.replication.channel, sys; print([each for each in sys.modules if 'moldau.security' in each])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
