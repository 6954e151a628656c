"""A fetcher asks for what changed, writes what comes, waits after errors, and has no task while nothing is to do."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.core.clock import Clock, SystemClock
from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset, TopicId
from moldau.log.partition_log import PartitionLog
from moldau.replication.assignment import Assignment
from moldau.replication.channel import Unreachable
from moldau.replication.fetcher import FetchTerms, Identity, ReplicaFetcher
from moldau.replication.follower import Follower, Position
from moldau.replication.leader_session import Key
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.replication.throttle import Throttle
from moldau.wire.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.fetch import FetchableTopicResponse, FetchPartition, PartitionData
from moldau.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, TOPIC_ID, batch, config, create
from tests.replication.exchanges import replica, serve

LEADER, ME = 1, 2
KEY: Key = (TOPIC_ID, 0)
TERMS = FetchTerms(wait_ms_max=50, backoff_ms=20)
Script = Callable[[FetchRequest], Any]


def position_of(asked: FetchPartition) -> Position:
    return Position(
        asked.current_leader_epoch,
        Offset(asked.fetch_offset),
        asked.last_fetched_epoch,
        Offset(asked.log_start_offset),
    )


class LeaderBroker:
    """A leader at the other end of a channel: its sessions, its partitions, and what a test makes it say instead."""

    def __init__(self) -> None:
        self.partitions: dict[Key, Partition] = {}
        self.known: dict[Key, Position] = {}
        self.scripts: list[Script] = []
        self.requests: list[FetchRequest] = []
        self.listed: list[ListOffsetsRequest] = []
        self.session_id = 0

    async def ask(self, request: Any, _version: int, *, timeout_ms: int) -> Any:
        assert timeout_ms > 0
        await asyncio.sleep(0.001)
        if isinstance(request, ListOffsetsRequest):
            self.listed.append(request)
            return self._list(request)
        self.requests.append(request)
        self._remember(request)
        if self.scripts:
            answer = self.scripts.pop(0)(request)
            if isinstance(answer, Exception):
                raise answer
            if answer is not None:
                return answer
        return self._fetch()

    def _remember(self, request: FetchRequest) -> None:
        if request.session_epoch == 0:
            self.known = {}
            self.session_id += 1
        else:
            assert request.session_id == self.session_id
        for topic in request.topics:
            for each in topic.partitions:
                self.known[TopicId(topic.topic_id), each.partition] = position_of(each)
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                del self.known[TopicId(gone.topic_id), index]

    def _fetch(self) -> FetchResponse:
        rows = []
        for (topic_id, index), position in self.known.items():
            data = serve(self.partitions[topic_id, index], ME, position)
            data.partition_index = index
            rows.append(FetchableTopicResponse(topic_id=topic_id, partitions=[data]))
        return FetchResponse(session_id=self.session_id, responses=rows)

    def _list(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        log = self.partitions[KEY].log
        topic = request.topics[0]
        asked = topic.partitions[0]
        offset = log.end_offset if asked.timestamp == -1 else log.log_start_offset
        row = ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[row])])


class World:
    def __init__(
        self, folder: Path, *, throttle: Throttle | None = None, terms: FetchTerms = TERMS, clock: Clock | None = None
    ) -> None:
        self.folder = folder
        self.leader = LeaderBroker()
        self.purposes: set[str] = set()
        self.flushes: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()
        self.fetcher = ReplicaFetcher(
            self._channel, "fetcher-0", whoami=lambda: Identity(ME, 7), terms=lambda: terms,
            clock=clock or SystemClock(), flush=self._flush, throttle=throttle,
        )  # fmt: skip
        self.mine: dict[Key, Partition] = {}

    async def _flush(self, log: PartitionLog) -> None:
        """As soon as the test says so, or with the error that it gives."""
        done = asyncio.get_running_loop().create_future()
        self.flushes.put_nowait(done)
        await done
        log.flushed(log.flush_point())

    def _channel(self, purpose: str) -> Any:
        self.purposes.add(purpose)
        return self.leader

    def add(self, key: Key = KEY, *, epoch: int = 0, **overrides: object) -> None:
        used = config(min_insync_replicas=1, **overrides)
        if key not in self.mine:
            assignment = Assignment((LEADER, ME), frozenset({LEADER, ME}))
            theirs = replica(self.folder / f"theirs{key[1]}", LEADER, leader=LEADER, assignment=assignment, used=used)
            self.leader.partitions[key] = theirs
            self.mine[key] = replica(self.folder / f"mine{key[1]}", ME, leader=LEADER, used=used)
        self.mine[key].lead(LeaderAndEpoch(LEADER, epoch), None)
        self.fetcher.add(key, Follower(self.mine[key]))

    def append(self, *values: bytes, key: Key = KEY) -> None:
        for value in values:
            self.leader.partitions[key].append(batch([value]), now_ms=NOW_MS)

    async def until_equal(self, key: Key = KEY) -> None:
        mine, theirs = self.mine[key], self.leader.partitions[key]
        await until(lambda: mine.log.end_offset == theirs.log.end_offset == mine.high_watermark)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not is_so():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.001)


@on_a_loop
async def test_it_fetches_with_a_session_and_says_who_it_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add()
    world.append(b"a", b"b")
    await world.until_equal()
    first, second, *_ = world.leader.requests
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert (second.session_id, second.session_epoch) == (1, 1)
    assert (first.replica_state.replica_id, first.replica_state.replica_epoch) == (ME, 7)
    assert (first.max_wait_ms, first.min_bytes, first.max_bytes) == (50, 1, 10 << 20)
    quiet = len(world.leader.requests)
    await until(lambda: len(world.leader.requests) > quiet + 2)
    assert world.leader.requests[-1].topics == [], "nothing moved"
    await world.fetcher.stop()


@on_a_loop
async def test_a_session_that_the_leader_lost_begins_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add()
    lost = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    world.leader.scripts = [lambda _: None, lambda _: lost]
    world.append(b"a")
    await world.until_equal()
    await until(lambda: len(world.leader.requests) > 3)
    assert [each.session_epoch for each in world.leader.requests[:4]] == [0, 1, 0, 1]
    assert [len(each.topics) for each in world.leader.requests[:4]] == [1, 1, 1, 0]
    await world.fetcher.stop()


@on_a_loop
async def test_a_leader_without_room_for_sessions_gets_everything_each_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add()

    def without_session(_: FetchRequest) -> FetchResponse:
        response = world.leader._fetch()
        response.session_id = 0
        return response

    world.leader.scripts = [without_session] * 3
    world.append(b"a")
    await until(lambda: len(world.leader.requests) > 3)
    assert [(each.session_id, each.session_epoch, len(each.topics)) for each in world.leader.requests[:4]] == [
        (0, 0, 1)
    ] * 4
    await world.until_equal()
    await world.fetcher.stop()


@on_a_loop
async def test_a_leader_that_can_not_be_reached_is_asked_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.leader.scripts = [lambda _: Unreachable("refused")] * 3
    world.add()
    world.append(b"a")
    await world.until_equal()
    assert [each.session_epoch for each in world.leader.requests[:4]] == [0, 0, 0, 0]
    await world.fetcher.stop()


@on_a_loop
async def test_an_error_of_one_partition_holds_up_no_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    other: Key = (TOPIC_ID, 1)
    world.add()
    world.add(other)

    def refuse_first(_: FetchRequest) -> FetchResponse:
        response = world.leader._fetch()
        response.responses[0].partitions[0] = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return response

    world.leader.scripts = [refuse_first]
    world.append(b"a")
    world.append(b"b", key=other)
    await world.until_equal(other)
    assert [gone.partitions for gone in world.leader.requests[1].forgotten_topics_data] == [[0]]
    await world.until_equal()
    await world.fetcher.stop()


@pytest.mark.parametrize(("backoff_ms", "lines"), [(3_600_000, 0), (30, 1)], ids=["a moment", "longer"])
@on_a_loop
async def test_a_leader_that_hears_of_its_election_late_is_asked_again_soon(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, backoff_ms: int, lines: int
) -> None:
    """It waits for all of its followers, so none may wait for the whole backoff, which is a second by default.

    It is usual, and worth a line only if it lasts.
    """
    world = World(tmp_path, terms=FetchTerms(wait_ms_max=50, backoff_ms=backoff_ms))
    world.add()

    def not_yet(_: FetchRequest) -> FetchResponse:
        response = world.leader._fetch()
        response.responses[0].partitions[0] = PartitionData(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
        return response

    world.leader.scripts = [not_yet, not_yet, not_yet]
    world.append(b"a")
    await world.until_equal()
    await world.fetcher.stop()
    assert caplog.text.count("can't be fetched in epoch") == lines


class SetBack:
    """A clock that goes back by an hour each time that it is looked at."""

    def __init__(self) -> None:
        self._now_ms = NOW_MS

    def now_ms(self) -> int:
        self._now_ms -= 3_600_000
        return self._now_ms

    def elapsed_ms(self) -> int:
        return SystemClock().elapsed_ms()


@on_a_loop
async def test_a_clock_that_is_set_back_does_not_make_a_pause_longer(tmp_path: Path) -> None:
    world = World(tmp_path, clock=SetBack())
    world.add()

    def not_yet(_: FetchRequest) -> FetchResponse:
        response = world.leader._fetch()
        response.responses[0].partitions[0] = PartitionData(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
        return response

    world.leader.scripts = [not_yet]
    world.append(b"a")
    await world.until_equal()
    await world.fetcher.stop()


@on_a_loop
async def test_a_leader_that_refuses_an_offset_that_it_has_is_not_asked_all_the_time(tmp_path: Path) -> None:
    world = World(tmp_path, terms=FetchTerms(wait_ms_max=50, backoff_ms=60_000))
    world.add()
    world.append(b"a")

    def refuse(_: FetchRequest) -> FetchResponse:
        response = world.leader._fetch()
        response.responses[0].partitions[0] = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return response

    world.leader.scripts = [refuse] * 1_000
    await asyncio.sleep(0.5)
    assert len(world.leader.requests) < 20
    world.leader.scripts.clear()
    await world.until_equal()
    await world.fetcher.stop()


@on_a_loop
async def test_a_follower_out_of_range_asks_what_the_leader_has(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add()
    world.append(*[b"x"] * 6)
    await world.until_equal()
    world.fetcher.remove(KEY)
    await until(lambda: world.fetcher._task is None)
    theirs = world.leader.partitions[KEY]
    world.append(*[b"y"] * 4)
    theirs.log.restart_at(theirs.log.end_offset, now_ms=NOW_MS)
    theirs.log.assign_epoch(0, theirs.log.end_offset)
    world.append(b"z")
    world.add()
    await until(lambda: world.mine[KEY].log.end_offset == 11)
    assert world.mine[KEY].log.log_start_offset == 10
    assert [each.replica_id for each in world.leader.listed] == [ME, ME]
    await world.fetcher.stop()


@on_a_loop
async def test_no_task_is_left_when_nothing_is_followed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add()
    await until(lambda: len(world.leader.requests) > 1)
    world.fetcher.remove(KEY)
    await until(lambda: world.fetcher._task is None)
    assert len(world.fetcher) == 0
    world.add(epoch=1)
    world.leader.partitions[KEY].lead(
        LeaderAndEpoch(LEADER, 1), Assignment((LEADER, ME), frozenset({LEADER, ME}), 1), now_ms=NOW_MS
    )
    world.append(b"again")
    await world.until_equal()
    await world.fetcher.stop()


@on_a_loop
async def test_who_comes_during_a_long_poll_does_not_wait_for_its_end(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add()
    await until(lambda: len(world.leader.requests) > 1)
    release = asyncio.Event()
    ask = world.leader.ask
    polls = 0

    async def slow(request: Any, version: int, *, timeout_ms: int) -> Any:
        nonlocal polls
        polls += 1
        if polls == 1:
            await release.wait()  # as a leader does that has nothing new
        return await ask(request, version, timeout_ms=timeout_ms)

    world.leader.ask = slow  # type: ignore[method-assign, assignment]
    await until(lambda: polls == 1)
    newcomer: Key = (TOPIC_ID, 5)
    world.leader.scripts = [Aside(world).answer]
    world.add(newcomer)
    world.append(b"now", key=newcomer)
    await until(lambda: world.mine[newcomer].log.end_offset == 1)
    assert "fetcher-0-newcomers" in world.purposes
    world.leader.scripts = []
    release.set()
    await world.until_equal(newcomer)
    await until(lambda: world.fetcher._newcomers is not None and world.fetcher._newcomers._task is None)
    await world.fetcher.stop()


class Aside:
    """Answers without a session, beside the one that the leader has."""

    def __init__(self, world: World) -> None:
        self.world = world

    def answer(self, request: FetchRequest) -> FetchResponse:
        self.world.leader.scripts.append(self.answer)
        rows = []
        for topic in request.topics:
            for each in topic.partitions:
                position = position_of(each)
                data = serve(self.world.leader.partitions[TopicId(topic.topic_id), each.partition], ME, position)
                data.partition_index = each.partition
                rows.append(FetchableTopicResponse(topic_id=topic.topic_id, partitions=[data]))
        return FetchResponse(responses=rows)


@on_a_loop
async def test_a_leader_that_goes_while_a_fetcher_stops_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition waits after an error, another is fetched by those who came during the poll, and the poll ends."""
    world = World(tmp_path, terms=FetchTerms(wait_ms_max=50, backoff_ms=3_600_000))
    other: Key = (TOPIC_ID, 1)
    newcomer: Key = (TOPIC_ID, 2)
    gone = asyncio.Event()
    ask = world.leader.ask
    polls = 0

    async def slow(request: Any, version: int, *, timeout_ms: int) -> Any:
        nonlocal polls
        polls += 1
        if polls == 1:
            return await ask(request, version, timeout_ms=timeout_ms)
        await gone.wait()
        raise Unreachable("the broker stops")

    def refuse_first(_: FetchRequest) -> FetchResponse:
        response = world.leader._fetch()
        response.responses[0].partitions[0] = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return response

    world.leader.ask = slow  # type: ignore[method-assign, assignment]
    world.leader.scripts = [refuse_first]
    world.add()
    world.add(other)
    await until(lambda: polls == 2)
    assert list(world.fetcher._held) == [KEY]
    world.add(newcomer)
    await until(lambda: polls == 3)
    gone.set()
    await world.fetcher.stop()
    assert "a fetch from a leader failed" not in caplog.text


@on_a_loop
async def test_a_throttled_replica_waits_until_it_may_go_on(tmp_path: Path) -> None:
    rate = [1]
    throttle = Throttle(lambda: rate[0], lambda _: True)
    world = World(tmp_path, throttle=throttle)
    throttle.record(1_000_000, SystemClock().elapsed_ms())
    world.add()
    world.append(b"a")
    await asyncio.sleep(0.1)
    assert world.leader.requests == []
    rate[0] = 1 << 40
    await world.until_equal()
    await world.fetcher.stop()


@on_a_loop
async def test_a_mistake_in_one_answer_does_not_end_replication(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.leader.scripts = [lambda _: "no response at all"]
    world.add()
    world.append(b"a")
    await world.until_equal()
    await world.fetcher.stop()


@on_a_loop
async def test_a_failed_log_directory_ends_the_replication_of_nothing_else(tmp_path: Path) -> None:
    """The directory takes its partitions from the fetcher while the fetcher writes to one of them."""
    world = World(tmp_path)
    other: Key = (TOPIC_ID, 1)
    for key in (KEY, other):
        world.add(key, segment_bytes=100)
        world.append(b"a", key=key)
    await world.until_equal()
    await world.until_equal(other)
    log = world.mine[KEY].log
    log.on_failure = lambda _: world.fetcher.remove(KEY)
    shutil.rmtree(log.path)
    world.append(b"b")
    await until(lambda: len(world.fetcher) == 1)
    world.append(b"c", key=other)
    await world.until_equal(other)
    await world.fetcher.stop()


def test_a_new_log_is_where_the_follower_begins(tmp_path: Path) -> None:
    partition = replica(tmp_path, ME, leader=LEADER, log=create(tmp_path))
    assert Follower(partition).position() == Position(0, partition.log.end_offset, -1, partition.log.log_start_offset)


@on_a_loop
async def test_a_leader_hears_of_records_when_the_followers_disk_has_them(tmp_path: Path) -> None:
    """Where `flush.messages` asks for it: else an acknowledged record would be on the leader's disk alone."""
    world = World(tmp_path)
    world.add(flush_messages=1)
    world.append(b"one")
    refused = await world.flushes.get()
    count = len(world.leader.requests)
    refused.set_exception(OSError(errno.EMFILE, "too many open files"))
    done = await world.flushes.get()
    assert len(world.leader.requests) == count, "the next question would say that the record is stored"
    assert world.leader.partitions[KEY].high_watermark == 0
    done.set_result(None)
    await world.until_equal()
    await world.fetcher.stop()
