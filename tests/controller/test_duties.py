"""Controllers of several brokers on one store: they follow each other's registrations, and take over."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from moldau.controller.duties import Duties
from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.controller.members.registration import BrokerRegistration, encode_registration
from moldau.controller.records import PartitionsChanged
from moldau.controller.runtime import Controller
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_LEADER
from moldau.store.sqlite import SqliteStore
from moldau.store.store import MetadataStore, Registration, StoreError
from tests.controller.clusters import ENDPOINTS, cluster, topic_id
from tests.controller.test_runtime import run, until

SETTINGS = {"leader.imbalance.check.interval.seconds": "1", "min.insync.replicas": "2"}

UNKNOWN = PartitionImage((), (), NO_LEADER)


class Member:
    """A broker as far as the controller goes."""

    def __init__(self, store: SqliteStore, controller: Controller, node_id: int) -> None:
        self.store = store
        self.controller = controller
        self.node_id = node_id
        self.starts = 0
        self.lost_sessions = 0
        self.is_dead = False
        self.registration = self.anew()
        config = BrokerConfig.of({"node.id": str(node_id), **SETTINGS})
        controller.new_registration = lambda: encode_registration(self.anew())
        controller.on_session_lost = self._lose_session
        controller.take_duties(lambda: config)

    def anew(self) -> BrokerRegistration:
        self.starts += 1
        incarnation = f"{id(self)}-{self.starts}".encode()
        self.registration = BrokerRegistration(self.node_id, incarnation, ENDPOINTS, has_whole_logs=True)
        return self.registration

    def _lose_session(self) -> None:
        self.lost_sessions += 1

    async def serve(self) -> None:
        await self.store.update(encode_registration(self.registration))

    def sees(self, node_id: int, *, incarnation: bytes | None = None) -> bool:
        known = self.controller.image.brokers.get(node_id)
        return known is not None and known.is_active and incarnation in (None, known.incarnation)

    def sees_all(self, count: int) -> bool:
        return all(self.sees(node_id) for node_id in range(1, count + 1))

    def sees_leader(self, *node_ids: int) -> bool:
        return self.partition.leader in node_ids

    async def die(self) -> None:
        """Its process ends: nobody resigns, and its registration goes."""
        self.is_dead = True
        self.controller._end_duties()
        if self.controller._standby is not None:
            self.controller._standby.cancel()
        await self.store.close()

    @property
    def partition(self) -> PartitionImage:
        topic = self.controller.image.topics.get("orders")
        return UNKNOWN if topic is None else topic.partitions[0]


@asynccontextmanager
async def members(path: Path, count: int) -> AsyncIterator[list[Member]]:
    """Brokers 1 to n, all of them taken in; 1 is the controller."""
    started: list[Member] = []
    try:
        for node_id in range(1, count + 1):
            started.append(await join(path, node_id))
        for member in started:
            await until(partial(member.sees_all, count))
        yield started
    finally:
        for member in started:
            if not member.is_dead:
                await member.controller.close()
                await member.store.close()


async def join(path: Path, node_id: int) -> Member:
    store = await SqliteStore.open(path)
    member = Member(store, await Controller.open(store, node_id, cluster_id="cluster"), node_id)
    await member.serve()
    return member


async def create(member: Member, factor: int = 3) -> None:
    config = BrokerConfig.of({"node.id": "1"})
    new = NewTopic("orders", assignments=[(0, list(range(1, factor + 1)))])
    await member.controller.write(lambda image: decide_create_topics(image, [new], config=config))


def test_brokers_are_taken_in_and_a_lost_one_is_replaced(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            await third.die()
            await until(lambda: second.partition.isr == (1, 2))
            assert second.controller.image.brokers[3].fenced
            back = await join(tmp_path / "store.db", 3)
            await until(lambda: second.sees(3, incarnation=back.registration.incarnation))
            assert second.controller.image.brokers[3].epoch == 4
            await back.die()

    run(test)


def test_a_controller_that_dies_is_replaced_by_one_that_follows_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            await first.die()
            await until(lambda: second.controller.is_active or third.controller.is_active)
            for member in (second, third):
                await until(partial(member.sees_leader, 2, 3))
                assert member.partition.isr == (2, 3)
                assert member.controller.image.brokers[1].fenced

    run(test)


def test_brokers_that_start_together_agree_on_the_cluster(tmp_path: Path) -> None:
    async def test() -> None:
        started = await asyncio.gather(*(join(tmp_path / "store.db", node_id) for node_id in (1, 2, 3)))
        for member in started:
            await until(partial(member.sees_all, 3))
            assert member.controller.image.cluster_id == "cluster"
        assert sum(member.controller.is_active for member in started) == 1
        for member in started:
            await member.controller.close()
            await member.store.close()

    run(test)


def test_a_broker_that_wants_to_stop_leads_nothing_then(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, _):
            await create(first)
            await first.store.update(encode_registration(replace(first.registration, wants_shutdown=True)))
            await until(lambda: second.partition.leader == 2)
            assert second.partition.isr == (2, 3)
            assert second.controller.image.brokers[1].in_controlled_shutdown
            assert first.controller.is_active, "it goes on deciding until it is closed"

    run(test)


def test_a_lost_session_ends_all_deciding_and_begins_another_incarnation(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 2) as (first, second):
            before = first.registration.incarnation
            assert first.store.on_session_lost is not None
            first.store.on_session_lost()
            assert not first.controller.is_active
            assert first.lost_sessions == 1
            with pytest.raises(ApiError) as refused:
                await create(first)
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            await until(lambda: first.registration.incarnation != before)
            await until(lambda: second.sees(1, incarnation=first.registration.incarnation))
            assert second.controller.image.brokers[1].epoch > 1

    run(test)


async def complain(of: int, *members: Member) -> None:
    for member in members:
        await member.store.update(encode_registration(replace(member.registration, out_of_reach=(of,))))


def test_a_broker_that_most_others_can_t_reach_is_fenced_until_they_can(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            await complain(3, second)
            await complain(3, first)
            await until(lambda: third.partition.isr == (1, 2))
            assert third.controller.image.brokers[3].fenced
            third.anew()
            await third.serve()
            await complain(3, second)  # is heard of after the registration, which must have changed nothing by then
            await first.controller.write(lambda _: Decision.reply_only(None))
            assert third.controller.image.brokers[3].fenced
            await second.serve()
            await until(lambda: first.sees(3, incarnation=third.registration.incarnation))

    run(test)


def test_two_brokers_do_not_fence_each_other(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 2) as (first, second):
            await complain(1, second)
            await complain(2, first)
            await first.store.update(encode_registration(replace(first.registration, rack="seen", out_of_reach=(2,))))
            await until(lambda: second.controller.image.brokers[1].rack == "seen")
            assert second.sees_all(2)

    run(test)


def test_a_controller_that_resigns_is_not_elected_before_it_stands_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 2) as (first, second):
            epoch = first.controller.epoch
            await first.controller.resign()
            assert not first.controller.is_active
            await until(lambda: second.controller.is_active)
            assert second.controller.epoch > epoch
            await second.controller.resign()
            with pytest.raises(ApiError) as refused:
                await create(first)
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            first.controller.candidacy.stand()
            await until(lambda: first.controller.is_active)
            await until(lambda: second.controller.image.controller_id == 1)

    run(test)


def test_a_process_that_is_known_to_be_dead_is_fenced_before_its_registration_goes(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, _, _):
            await create(first)
            epoch = first.controller.image.brokers[2].epoch
            await first.controller.fence(2, broker_epoch=epoch)
            assert first.partition.isr == (1, 3)
            assert first.controller.image.brokers[2].fenced
            await first.controller.fence(2, broker_epoch=epoch)
            assert 2 in [each.broker_id for each in await first.store.registrations()]

    run(test)


class ForgetfulStore:
    """Its first look misses everybody."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def watch_registrations(self) -> AsyncIterator[Sequence[Registration]]:
        yield []
        async for registrations in self._store.watch_registrations():
            yield registrations


def test_a_look_that_misses_the_controller_itself_fences_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            duties = first.controller._duties
            assert duties is not None
            duties.stop()
            duties._store = cast("MetadataStore", ForgetfulStore(first.store))
            duties.start()
            await until(lambda: "is not among the brokers that are registered (nobody)" in caplog.text)
            await third.die()
            await until(lambda: second.partition.isr == (1, 2))
            assert [second.sees(node_id) for node_id in (1, 2, 3)] == [True, True, False]

    run(test)


class FaultyStore:
    """Its first look fails, as no store says that it may: it has no descriptor left, for one."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.looks = 0

    async def watch_registrations(self) -> AsyncIterator[Sequence[Registration]]:
        self.looks += 1
        if self.looks == 1:
            raise OSError("too many open files")
        async for registrations in self._store.watch_registrations():
            yield registrations


def test_a_look_that_fails_is_not_the_last_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            duties, faulty = first.controller._duties, FaultyStore(first.store)
            assert duties is not None
            duties.stop()
            duties._store = cast("MetadataStore", faulty)
            duties.start()
            await until(lambda: faulty.looks == 1)
            await third.die()
            await until(lambda: second.partition.isr == (1, 2))

    run(test)


def test_preferred_replicas_lead_again_after_a_while(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 2) as (first, second):
            await create(first, factor=2)
            moved = replace(first.partition, leader=2, leader_epoch=1, partition_epoch=1)
            await first.controller.write(
                lambda image: Decision((PartitionsChanged(image.topics["orders"].id, {0: moved}),), None)
            )
            assert first.partition.leader == 2
            await until(lambda: second.partition.leader_epoch == 2)
            assert second.partition.leader == 1

    run(test)


def test_what_the_store_refuses_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.controller.duties.RETRY_MS", 10)

    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            append, refusals = first.store.append, iter([True] * 3)

            async def refusing(payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
                if next(refusals, False):
                    raise StoreError("the disk is full")
                return await append(payload, controller_epoch=controller_epoch, may_take_reserve=may_take_reserve)

            monkeypatch.setattr(first.store, "append", refusing)
            await third.die()
            await until(lambda: second.partition.isr == (1, 2))

    run(test)


@pytest.mark.parametrize("is_written", [False, True], ids=["is lost", "is written, and nobody says so"])
def test_partitions_of_a_fenced_broker_are_settled_also_if_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Else the broker's next process would lead on in the epoch of the one before it, as if it had lost nothing."""
    monkeypatch.setattr("moldau.controller.duties.RETRY_MS", 10)

    async def test() -> None:
        async with members(tmp_path / "store.db", 3) as (first, second, third):
            await create(first)
            append, fates = first.store.append, iter([is_written, not is_written, True])

            async def failing(payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
                fate = next(fates, None)
                if fate is False:
                    raise StoreError("the connection was lost")
                position = await append(payload, controller_epoch=controller_epoch, may_take_reserve=may_take_reserve)
                if fate is not None:
                    raise StoreError("the connection was lost")
                return position

            monkeypatch.setattr(first.store, "append", failing)
            await third.die()
            back = await join(tmp_path / "store.db", 3)
            await until(lambda: second.sees(3, incarnation=back.registration.incarnation))
            assert second.partition.isr == (1, 2)
            await back.die()

    run(test)


def test_an_entry_that_was_written_though_the_store_said_no_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 1) as (first,):
            append, lost = first.store.append, iter([True])

            async def losing(payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
                position = await append(payload, controller_epoch=controller_epoch, may_take_reserve=may_take_reserve)
                if next(lost, False):
                    raise StoreError("the connection was lost")
                return position

            monkeypatch.setattr(first.store, "append", losing)
            with pytest.raises(ApiError, match="connection was lost"):
                await create(first, factor=1)
            config = BrokerConfig.of({"node.id": "1"})
            again = await first.controller.write(
                lambda image: decide_create_topics(image, [NewTopic("orders", 1, 1)], config=config)
            )
            assert [each.error for each in again] == [ErrorCode.TOPIC_ALREADY_EXISTS]

    run(test)


def test_a_broker_alone_has_no_elections_to_hold(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 1) as (first,):
            duties = first.controller._duties
            assert duties is not None
            assert [task.get_name() for task in duties._tasks] == ["controller-registrations"]
            assert first.controller.image.brokers[1].fenced is False

    run(test)


@pytest.mark.filterwarnings("error")
def test_duties_that_end_before_they_begin_leave_nothing_behind(tmp_path: Path) -> None:
    async def test() -> None:
        async with members(tmp_path / "store.db", 1) as (first,):
            duties = first.controller._duties
            assert duties is not None
            for _ in range(2):
                duties.stop()
                duties.start()
            await until(lambda: first.sees(1))

    run(test)
    gc.collect()


def test_a_fault_in_one_election_does_not_end_them() -> None:
    class Writer:
        def __init__(self) -> None:
            imbalanced = (PartitionImage((1, 2), (1, 2), 2),)
            self.image = cluster(TopicImage("orders", topic_id(1), imbalanced, {}), brokers=2)
            self.written: asyncio.Queue[None] = asyncio.Queue()

        async def write(self, _: Callable[[ClusterImage], Decision[Any]]) -> Any:
            self.written.put_nowait(None)
            if self.written.qsize() == 1:
                raise KeyError("a mistake of ours")
            return 0

    async def test() -> None:
        writer, config = Writer(), BrokerConfig.of({"node.id": "1", **SETTINGS})
        duties = Duties(writer, cast("Any", None), 1, lambda: config)
        duties._hold_elections()
        while writer.written.qsize() < 2:  # noqa: ASYNC110 - it is looked at once a second
            await asyncio.sleep(0.01)
        duties.stop()

    run(test)
