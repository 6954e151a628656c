"""What every metadata store does, on SQLite and on a real ZooKeeper ensemble."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.store.process import ProcessId, is_alive, is_gone, this_process
from moldau.store.store import (
    START,
    ControllerAndEpoch,
    Fenced,
    MetadataEntry,
    MetadataStore,
    Registration,
    StoreError,
    Tail,
)
from tests.store.clock_jump import DAY_S, JumpingClock
from tests.store.ensemble import Ensemble
from tests.store.holder import holding
from tests.store.kinds import BRIEF_TIMEOUT_MS, Kind, lead, run, until

pytestmark = pytest.mark.xdist_group("store")

MIB = 1024 * 1024
GONE = this_process()._replace(pid=2**22 - 1, started=1)  # above the default limit of process numbers


def test_entries_survive_and_are_numbered(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            assert await store.read(START) == Tail(None, [])
            epoch = await lead(store, 1)
            assert [await store.append(text, controller_epoch=epoch) for text in (b"a", b"b", b"")] == [1, 2, 3]
        async with kind.opened() as store:
            assert await store.read(1) == Tail(None, [MetadataEntry(2, b"b"), MetadataEntry(3, b"")])
            assert (await store.read(3)).end is None

    run(test)


def test_appends_that_are_under_way_together_have_places_of_their_own(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            texts = [b"%d" % number for number in range(20)]
            places = await asyncio.gather(*(store.append(text, controller_epoch=epoch) for text in texts))
            assert sorted(places) == list(range(1, 21))
            tail = await store.read(START)
            assert [tail.entries[place - 1].payload for place in places] == texts

    run(test)


def test_an_append_that_nobody_waits_for_leaves_no_gap(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            given_up = asyncio.ensure_future(store.append(b"given up", controller_epoch=epoch))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            given_up.cancel()
            place = await store.append(b"next", controller_epoch=epoch)
            entries = (await store.read(START)).entries
            assert [entry.position for entry in entries] == list(range(1, place + 1))
            assert entries[-1] == MetadataEntry(place, b"next")

    run(test)


def test_a_snapshot_stands_for_the_entries_before_it(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            for text in (b"a", b"b", b"c"):
                await store.append(text, controller_epoch=epoch)
            await store.snapshot(b"ab", position=2, controller_epoch=epoch)
            assert await store.read(START) == Tail(MetadataEntry(2, b"ab"), [MetadataEntry(3, b"c")])
            assert await store.read(2) == Tail(None, [MetadataEntry(3, b"c")])
            await store.snapshot(b"abc", position=3, controller_epoch=epoch)
            assert (await store.read(START)).end == 3
            assert await store.append(b"d", controller_epoch=epoch) == 4
            await store.snapshot(b"", position=4, controller_epoch=epoch)
            assert await store.read(START) == Tail(MetadataEntry(4, b""), [])

    run(test)


def test_a_snapshot_begins_a_log_that_was_moved(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            await store.snapshot(b"moved", position=70, controller_epoch=epoch)
            assert await store.append(b"next", controller_epoch=epoch) == 71
            assert await store.read(START) == Tail(MetadataEntry(70, b"moved"), [MetadataEntry(71, b"next")])

    run(test)


def test_entries_and_snapshots_may_be_large(kind: Kind) -> None:
    async def test() -> None:
        entry, snapshot, last = os.urandom(3 * MIB + 1), os.urandom(5 * MIB), os.urandom(MIB)
        async with kind.opened() as writer, kind.opened() as reader:
            epoch = await lead(writer, 1)
            await writer.append(b"small", controller_epoch=epoch)
            assert await writer.append(entry, controller_epoch=epoch) == 2
            assert (await reader.read(1)).entries == [MetadataEntry(2, entry)]
            await writer.snapshot(snapshot, position=2, controller_epoch=epoch)
            await writer.append(last, controller_epoch=epoch)
            assert await reader.read(1) == Tail(MetadataEntry(2, snapshot), [MetadataEntry(3, last)])

    run(test)


def test_whoever_reads_while_snapshots_are_taken_misses_nothing(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as writer, kind.opened() as reader:
            epoch = await lead(writer, 1)

            async def write() -> None:
                for number in range(1, 61):
                    await writer.append(b"%d" % number, controller_epoch=epoch)
                    if number % 6 == 0:
                        await writer.snapshot(b"%d" % number, position=number, controller_epoch=epoch)

            writing = asyncio.ensure_future(write())
            position = START
            while position < 60:
                tail = await reader.read(position)
                payloads = [tail.snapshot] if tail.snapshot else []
                for each in [*payloads, *tail.entries]:
                    assert each.payload == b"%d" % each.position
                assert [entry.position for entry in tail.entries] == list(
                    range((tail.snapshot.position if tail.snapshot else position) + 1, (tail.end or position) + 1)
                )
                position = tail.end or position
            await writing

    run(test)


def test_an_older_controller_is_fenced(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as old, kind.opened() as new:
            first = await lead(old, 1)
            await old.append(b"a", controller_epoch=first)
            assert await new.evict(Registration(1, b"1"))
            second = await lead(new, 2)
            assert second == first + 1
            with pytest.raises(Fenced):
                await old.append(b"late", controller_epoch=first)
            with pytest.raises(Fenced):
                await old.snapshot(b"late", position=1, controller_epoch=first)
            await new.append(b"b", controller_epoch=second)
            assert await old.read(START) == Tail(None, [MetadataEntry(1, b"a"), MetadataEntry(2, b"b")])

    run(test)


def test_a_controller_without_its_session_is_fenced_though_nobody_was_elected(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as old, kind.opened() as other:
            epoch = await lead(old, 1)
            await other.evict(Registration(1, b"1"))
            with pytest.raises(Fenced):
                await old.append(b"late", controller_epoch=epoch)
            with pytest.raises(StoreError):
                await old.elect(1)
            assert await lead(old, 1) == epoch + 1
            assert await old.append(b"a", controller_epoch=epoch + 1) == 1

    run(test)


def test_only_the_registration_that_was_meant_is_evicted(kind: Kind) -> None:
    async def test() -> None:
        lost: list[int] = []
        async with kind.opened() as one, kind.opened() as two:
            one.on_session_lost = lambda: lost.append(1)
            await one.register(Registration(1, b"new"))
            assert not await two.evict(Registration(1, b"old"))
            assert not await two.evict(Registration(7, b"new"))
            assert await two.registrations() == [Registration(1, b"new")]
            assert await two.evict(Registration(1, b"new"))
            assert await two.registrations() == []
            await until(lambda: bool(lost))
            await one.register(Registration(1, b"newer"))
            assert await two.registrations() == [Registration(1, b"newer")]
            assert lost == [1]

    run(test)


def test_a_living_controller_stays_until_it_resigns(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as one, kind.opened() as two:
            await two.register(Registration(2, b""))
            leader = ControllerAndEpoch(1, await lead(one, 1))
            assert await two.elect(2) == leader
            await one.resign(leader)
            assert await two.elect(2) == ControllerAndEpoch(2, leader.epoch + 1)
            await one.resign(leader)
            assert await one.elect(1) == ControllerAndEpoch(2, leader.epoch + 1)
            with pytest.raises(Fenced):
                await one.append(b"late", controller_epoch=leader.epoch)

    run(test)


def test_a_broker_that_is_elected_again_controls_under_a_new_epoch(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            first = await lead(store, 1)
            assert await store.elect(1) == ControllerAndEpoch(1, first + 1)
            with pytest.raises(Fenced):
                await store.append(b"late", controller_epoch=first)
            assert await store.append(b"a", controller_epoch=first + 1) == 1

    run(test)


def test_only_a_registered_broker_is_elected(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            with pytest.raises(StoreError, match="not registered"):
                await store.elect(1)
            with pytest.raises(StoreError, match="broker 1 is not registered"):
                await store.update(Registration(1, b""))

    run(test)


def test_whoever_watches_learns_who_comes_changes_and_goes(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as watcher:
            await watcher.register(Registration(3, b"three"))
            changes = watcher.watch_registrations()
            assert await anext(changes) == [Registration(3, b"three")]
            async with kind.opened() as other:
                await other.register(Registration(2, b"two"))
                assert await anext(changes) == [Registration(2, b"two"), Registration(3, b"three")]
                await other.update(Registration(2, b"two, leaving"))
                assert await anext(changes) == [Registration(2, b"two, leaving"), Registration(3, b"three")]
            assert await anext(changes) == [Registration(3, b"three")]

    run(test)


def test_whoever_begins_to_watch_misses_nothing_that_it_wrote(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            await store.register(Registration(1, b""))
            watching = asyncio.ensure_future(collect(store, []))
            for number in range(50):
                await store.update(Registration(1, b"%d" % number))
                assert await anext(store.watch_registrations()) == [Registration(1, b"%d" % number)]
                leadership = await store.elect(1)
                assert await anext(store.watch_controller()) == leadership
                await store.resign(leadership)
                assert await anext(store.watch_controller()) is None
            watching.cancel()

    run(test)


def test_whoever_watches_learns_who_controls(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as watcher:
            changes = watcher.watch_controller()
            assert await anext(changes) is None
            async with kind.opened() as one:
                leadership = ControllerAndEpoch(1, await lead(one, 1))
                assert await anext(changes) == leadership
                await one.resign(leadership)
                assert await anext(changes) is None
                leadership = await one.elect(1)
                assert await anext(changes) == leadership
            assert await anext(changes) is None

    run(test)


def test_watching_tells_of_what_others_append(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as writer, kind.opened() as reader:
            epoch = await lead(writer, 1)
            await writer.append(b"a", controller_epoch=epoch)
            changes = reader.watch(START)
            assert await anext(changes) == 1
            coming = asyncio.ensure_future(anext(changes))
            await writer.append(b"b", controller_epoch=epoch)
            assert await coming == 2

    run(test)


def test_closing_takes_the_registration_away(kind: Kind) -> None:
    async def test() -> None:
        async with kind.opened() as store:
            async with kind.opened() as other:
                other.on_session_lost = lambda: pytest.fail("it was not lost")
                await other.register(Registration(2, b""))
                assert await store.registrations() == [Registration(2, b"")]
            assert await store.registrations() == []

    run(test)


def test_one_broker_id_is_held_by_one_living_process(kind: Kind) -> None:
    async def test() -> None:
        async with holding(kind.spec, 1) as other, kind.opened() as ours:
            await other.ask("register", "theirs")
            with pytest.raises(StoreError, match=f"broker 1 is already running as process {other.pid}"):
                await ours.register(Registration(1, b"ours"))
            assert await ours.registrations() == [Registration(1, b"theirs")]

    run(test)


def test_a_process_that_was_killed_makes_way_at_once_for_its_successor(kind: Kind) -> None:
    async def test() -> None:
        async with holding(kind.spec, 1, session_timeout_ms=20_000) as other, kind.opened() as ours:
            await other.ask("register", "theirs")
            _, epoch = await other.ask("elect")
            await other.kill()
            async with asyncio.timeout(10):
                await ours.register(Registration(1, b"ours"))
                assert await ours.elect(1) == ControllerAndEpoch(1, epoch + 1)
            assert await ours.registrations() == [Registration(1, b"ours")]

    run(test)


def test_a_process_that_was_killed_is_missed(kind: Kind) -> None:
    async def test() -> None:
        async with holding(kind.spec, 1, session_timeout_ms=BRIEF_TIMEOUT_MS) as other, kind.opened() as ours:
            await other.ask("register", "one")
            _, epoch = await other.ask("elect")
            await ours.register(Registration(2, b"two"))
            controllers, brokers = ours.watch_controller(), ours.watch_registrations()
            assert await anext(controllers) == ControllerAndEpoch(1, epoch)
            assert len(await anext(brokers)) == 2
            await other.kill()
            assert await anext(brokers) == [Registration(2, b"two")]
            assert await anext(controllers) is None
            assert await ours.elect(2) == ControllerAndEpoch(2, epoch + 1)

    run(test)


def test_a_process_that_was_stopped_wakes_up_fenced(kind: Kind) -> None:
    async def test() -> None:
        async with holding(kind.spec, 1, session_timeout_ms=BRIEF_TIMEOUT_MS) as paused, kind.opened() as ours:
            await paused.ask("register", "one")
            _, epoch = await paused.ask("elect")
            assert await paused.ask("append", "a") == 1
            await ours.register(Registration(2, b"two"))
            paused.send_signal(signal.SIGSTOP)
            async for living in ours.watch_registrations():
                if living == [Registration(2, b"two")]:
                    break
            leadership = await ours.elect(2)
            assert leadership == ControllerAndEpoch(2, epoch + 1)
            await ours.append(b"b", controller_epoch=leadership.epoch)
            paused.tell("append", "late")
            paused.send_signal(signal.SIGCONT)
            assert await paused.hear("append", "lost") == {"append": "fenced", "lost": 1}
            assert [entry.payload for entry in (await ours.read(START)).entries] == [b"a", b"b"]
            assert await paused.ask("register", "one-again") == "one-again"
            assert await paused.ask("elect") == [2, leadership.epoch]
            assert await ours.registrations() == [Registration(1, b"one-again"), Registration(2, b"two")]

    run(test)


@pytest.mark.skipif(not JumpingClock.is_available(), reason="a clock that jumps needs a C compiler")
def test_clocks_that_jump_change_no_session(kind: Kind, tmp_path: Path, ensemble: Ensemble) -> None:
    """The clocks of the broker and of the ensemble; the observer's stays, so that they differ, too."""

    async def test() -> None:
        clock = JumpingClock(tmp_path)
        async with (
            holding(kind.spec, 1, session_timeout_ms=BRIEF_TIMEOUT_MS, environment=clock.environment) as other,
            kind.opened() as ours,
        ):
            await other.ask("register", "one")
            await other.ask("elect")
            seen: list[Sequence[Registration]] = []
            watching = asyncio.ensure_future(collect(ours, seen))
            await until(lambda: bool(seen))
            # A clock set forward would end a session at once, one set back would keep it from being renewed.
            for jump_s, sessions in ((DAY_S, 0.4), (-DAY_S, 1.2)):
                clock.jump(jump_s)
                ensemble.clock.jump(-jump_s)
                while abs(await other.ask("time") - time.time() - jump_s) > DAY_S / 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await asyncio.sleep(sessions * BRIEF_TIMEOUT_MS / 1000)
            assert await other.ask("append", "a") == 1
            assert seen == [[Registration(1, b"one")]]
            assert await ours.read(START) == Tail(None, [MetadataEntry(1, b"a")])
            watching.cancel()

    try:
        run(test)
    finally:
        ensemble.clock.jump(0)


async def collect(store: MetadataStore, seen: list[Sequence[Registration]]) -> None:
    async for living in store.watch_registrations():
        seen.append(living)


def test_controllers_that_race_write_one_log(kind: Kind) -> None:
    """Each takes its turn when it is elected, and some are evicted in the middle of it."""

    async def test() -> None:
        written: list[tuple[int, bytes]] = []
        epochs: list[int] = []

        async def race(store: MetadataStore, broker_id: int) -> None:
            while len(epochs) < 20:
                await store.register(Registration(broker_id, b"%d" % broker_id))
                try:
                    leadership = await store.elect(broker_id)
                    if leadership.broker_id != broker_id:
                        await asyncio.sleep(0.005)
                        continue
                    epochs.append(leadership.epoch)
                    for number in range(3):
                        text = b"%d %d %d" % (leadership.epoch, broker_id, number)
                        written.append((await store.append(text, controller_epoch=leadership.epoch), text))
                    await store.resign(leadership)
                except Fenced:
                    continue

        async def disturb(store: MetadataStore) -> None:
            while len(epochs) < 20:
                for each in await store.registrations():
                    await store.evict(each)
                    await asyncio.sleep(0.03)

        async with kind.opened() as one, kind.opened() as two, kind.opened() as three, kind.opened() as fourth:
            await asyncio.gather(race(one, 1), race(two, 2), race(three, 3), disturb(fourth))
            entries = (await fourth.read(START)).entries
        assert len(set(epochs)) == len(epochs), "no two were elected with one epoch"
        assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
        payloads = {entry.position: entry.payload for entry in entries}
        assert all(payloads[position] == text for position, text in written)
        order = [int(entry.payload.split()[0]) for entry in entries]
        assert order == sorted(order), "nobody wrote after the next one was elected"

    run(test)


def test_a_process_is_known_by_number_start_and_container() -> None:
    ours = this_process()
    assert is_alive(ours)
    assert not is_gone(ours)
    assert is_gone(GONE)
    assert is_gone(ours._replace(started=ours.started + 1))
    assert not is_gone(GONE._replace(namespace="pid:[1]")), "a container's processes can't be seen from here"
    assert not is_gone(GONE._replace(boot="another machine's"))
    assert is_gone(ProcessId(GONE.pid, GONE.started)), "where the system tells neither"


def test_a_process_that_nobody_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        known = this_process()._replace(pid=child.pid, started=int(stat[19]))
        assert not is_gone(known)
        assert child.stdin is not None
        child.stdin.close()
        while not is_gone(known):
            time.sleep(0.01)
