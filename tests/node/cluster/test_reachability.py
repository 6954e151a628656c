"""Brokers that ask each other over real connections, and what the cluster makes of a silent one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from moldau.broker.peers import Peers
from moldau.controller.image import BrokerImage, Endpoint
from moldau.controller.runtime import Controller
from moldau.core.config.broker import BrokerConfig
from moldau.node.cluster.membership import Membership
from moldau.node.cluster.reachability import Reachability
from moldau.replication.channel import ChannelError
from moldau.store.sqlite import SqliteStore
from moldau.store.store import Registration
from moldau.wire.messages import ApiVersionsRequest
from tests.controller.test_runtime import run, until

TIMEOUT_MS = 900
QUESTION = ApiVersionsRequest()
VERSIONS_ANSWER = bytes(2 + 4)  # no error, and no APIs
CORRELATION = slice(4, 8)  # in a request


class Listener:
    """Where a broker listens; what it hears may be kept from it."""

    def __init__(self) -> None:
        self.is_silent = False
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while size := int.from_bytes(await reader.readexactly(4), "big"):
                request = await reader.readexactly(size)
                if not self.is_silent:
                    answer = request[CORRELATION] + VERSIONS_ANSWER
                    writer.write(len(answer).to_bytes(4, "big") + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


class Member:
    """A broker without its partitions."""

    def __init__(self, store: SqliteStore, controller: Controller, listener: Listener, broker_id: int) -> None:
        self.store = store
        self.listener = listener
        self.controller = controller
        self.broker_id = broker_id
        broker = BrokerImage(broker_id, {"PLAINTEXT": Endpoint("127.0.0.1", listener.port)})
        self.membership = Membership(store, broker, cluster_id="cluster", has_whole_logs=True, lost={})
        controller.new_registration = self.membership.register_anew
        controller.take_duties(lambda: BrokerConfig.of({"node.id": str(broker_id)}))
        self.peers = Peers(broker_id, lambda: controller.image, listener_name="PLAINTEXT")
        self.reachability = Reachability(
            controller, store, self.membership, self.peers, broker_id=broker_id, timeout_ms=TIMEOUT_MS
        )

    @property
    def active(self) -> set[int]:
        """The brokers that lead and follow, as this one knows."""
        return {each.id for each in self.controller.image.active_brokers()}


class SlowRegistrations:
    """From now on, a member's store does not say who is registered before it may."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.is_asked = False
        self.may_answer = asyncio.Event()
        self._registrations = member.store.registrations
        member.store.registrations = self.registrations  # type: ignore[method-assign]

    async def registrations(self) -> Sequence[Registration]:
        self.is_asked = True
        await self.may_answer.wait()
        return await self._registrations()


@asynccontextmanager
async def members(path: Path, count: int) -> AsyncIterator[list[Member]]:
    """Brokers 1 to n, all of them taken in; 1 is the controller."""
    async with AsyncExitStack() as running:
        started = []
        for broker_id in range(1, count + 1):
            store = await SqliteStore.open(path)
            running.push_async_callback(store.close)
            controller = await Controller.open(store, broker_id, cluster_id="cluster")
            running.push_async_callback(controller.close)
            listener = await running.enter_async_context(Listener())
            member = Member(store, controller, listener, broker_id)
            running.push_async_callback(member.peers.close)
            await store.update(member.membership.register_anew())
            member.reachability.start()
            running.push_async_callback(member.reachability.stop)
            started.append(member)
        for member in started:
            await until(partial(all_are_active, member, count))
        yield started


def all_are_active(member: Member, count: int) -> bool:
    return member.active == set(range(1, count + 1))


def test_a_broker_that_answers_nobody_is_fenced_and_comes_back_when_it_answers(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            epoch = first.controller.image.brokers[3].epoch
            third.listener.is_silent = True
            waiting = asyncio.ensure_future(second.peers.channels.to(3, "fetch").ask(QUESTION, 0, timeout_ms=60_000))
            await until(lambda: second.active == {1, 2})
            assert first.membership.out_of_reach == (3,)
            with pytest.raises(ChannelError, match="it was fenced"):
                await waiting
            third.listener.is_silent = False
            await until(lambda: all_are_active(second, 3))
            assert second.controller.image.brokers[3].epoch > epoch
            await until(lambda: first.membership.out_of_reach == ())

    run(test)


def test_a_broker_that_is_heard_again_while_the_store_is_slow_is_not_fenced(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            held = [SlowRegistrations(each) for each in (first, second)]
            third.listener.is_silent = True
            await until(lambda: all(each.is_asked for each in held))
            third.listener.is_silent = False
            now_s = asyncio.get_running_loop().time
            await until(lambda: not any(each.member.reachability._reach.out_of_reach(now_s()) for each in held))
            for each in held:
                each.may_answer.set()
            await until(lambda: all(each.member.reachability._acting is None for each in held))
            assert [each.member.membership.out_of_reach for each in held] == [(), ()]

    run(test)


def test_a_controller_that_answers_nobody_gives_its_office_up(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            assert first.controller.is_active
            first.listener.is_silent = True
            await until(lambda: second.controller.is_active or third.controller.is_active)
            await until(lambda: second.active == {2, 3})
            assert not first.controller.is_active
            first.listener.is_silent = False
            await until(lambda: all_are_active(second, 3))
            assert not first.controller.is_active, "the other one has done nothing that it would have to go for"

    run(test)


def test_of_two_brokers_none_is_fenced(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 2) as (first, second):
            second.listener.is_silent = first.listener.is_silent = True
            await until(lambda: first.membership.out_of_reach == (2,) and second.membership.out_of_reach == (1,))
            await until(lambda: first.membership.is_told and second.membership.is_told)
            assert first.active == second.active == {1, 2}
            assert first.controller.is_active

    run(test)


def test_a_living_broker_that_was_fenced_comes_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 2) as (first, second):
            epoch = first.controller.image.brokers[2].epoch
            await first.controller.fence(2, broker_epoch=epoch)
            assert first.active == {1}
            await until(lambda: all_are_active(first, 2) and all_are_active(second, 2))
            assert first.controller.image.brokers[2].epoch > epoch

    run(test)
