"""A second look at what grew finds the same as one at everything."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, cast

import pytest

from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.fetching.reading import PARTITIONS_PER_LOOK, Reading, Terms, read, read_rest, worth_a_look
from moldau.coordinator.long_work import LongWork
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER
from moldau.log.file_range import FileRange
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.batch import Record, build_batch
from moldau.wire.messages.fetch import FetchPartition
from tests.coordinator.partitions import TOPIC, new_partition

COUNT = 12


class Local:
    """The partitions of one broker."""

    def __init__(self, partitions: list[Partition]) -> None:
        self._partitions = partitions

    def get(self, _: str, index: int) -> Partition:
        return self._partitions[index]


class Noting:
    """A watcher that remembers who grew."""

    def __init__(self) -> None:
        self.partitions: set[Partition] = set()

    def grown(self, partition: Partition, _: int) -> None:
        self.partitions.add(partition)

    def disturbed(self) -> None:
        raise AssertionError("nobody disturbs here")


def append(partition: Partition, chance: random.Random) -> None:
    size = chance.choice([1, 100, 3_000])
    records = build_batch([Record(0, 5, b"key", bytes(size))])
    partition.append(memoryview(records), now_ms=5)


def seen(reading: Reading) -> Any:
    found = []
    for one, data in reading.found:
        records = cast(FileRange, data.records)
        found.append((one.index, data.error_code, data.high_watermark, records.position, records.size))
    return found, reading.size_bytes, reading.has_error


def ask(one: Wanted, offset: int) -> None:
    one.ask(FetchPartition(partition=one.index, fetch_offset=offset, partition_max_bytes=4_000))


@pytest.mark.parametrize("seed", range(30))
def test_a_look_at_what_grew_finds_what_a_look_at_everything_finds(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    partitions = [new_partition(tmp_path, index) for index in range(COUNT)]
    local = cast(Any, Local(partitions))
    wanted = [Wanted(TOPIC, FetchPartition(partition=index, partition_max_bytes=4_000)) for index in range(COUNT)]
    terms = Terms(version=11, bytes_max=9_000, bytes_min=1, read_committed=False, changes_only=True)
    for _ in range(12):
        first = read(wanted, terms, local)
        told = {one for one, _ in first.found}
        noting = Noting()
        for partition in partitions:
            partition.commit_watchers[noting] = None
        for partition in chance.choices(partitions, k=chance.randrange(4)):
            append(partition, chance)
        everything = read(wanted, terms, local)
        assert seen(read(worth_a_look(wanted, told, noting.partitions), terms, local)) == seen(everything)
        for partition in partitions:
            partition.commit_watchers.clear()
        for one, data in everything.found:  # as a client that was answered goes on
            if chance.random() < 0.8:
                one.told_high_watermark, one.told_log_start_offset = data.high_watermark, data.log_start_offset
                ask(one, chance.choice([data.high_watermark, one.offset]))
        chance.shuffle(wanted)


@pytest.mark.parametrize("seed", range(10))
def test_a_look_that_takes_long_lets_others_have_their_turn_and_finds_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    partitions = [new_partition(tmp_path, index) for index in range(5 * PARTITIONS_PER_LOOK)]
    local = cast(Any, Local(partitions))
    for partition in chance.choices(partitions, k=40):
        append(partition, chance)
    for partition in chance.choices(partitions, k=3):
        partition.retire()
    bytes_max = chance.choice([9_000, 1_000_000])
    terms = Terms(version=11, bytes_max=bytes_max, bytes_min=1, read_committed=False, changes_only=False)

    def wanted() -> list[Wanted]:
        return [Wanted(TOPIC, FetchPartition(partition=each.index, partition_max_bytes=4_000)) for each in partitions]

    monkeypatch.setattr("moldau.broker.fetching.reading.SLICE_S", 60.0)
    at_once = read(wanted(), terms, local)
    assert not at_once.to_read
    monkeypatch.setattr("moldau.broker.fetching.reading.SLICE_S", 0.0)

    async def others_between() -> int:
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        others = asyncio.create_task(take_turns())
        reading = read(wanted(), terms, local)
        assert len(reading.to_read) == 4 * PARTITIONS_PER_LOOK
        await read_rest(reading, terms, local, LongWork())
        others.cancel()
        assert seen_everywhere(reading) == seen_everywhere(at_once)
        return turns

    assert asyncio.run(others_between()) >= 3


def seen_everywhere(reading: Reading) -> Any:
    found = [(one.index, data.error_code, data.high_watermark, len(data.records or b"")) for one, data in reading.found]
    return found, reading.size_bytes, reading.has_error, reading.to_read


def test_a_replica_that_knows_no_leader_is_read_by_nobody(tmp_path: Path) -> None:
    """It may have led before it was started again, with fewer records than its consumers have read."""
    partition = new_partition(tmp_path, 0)
    epoch = partition.leader_epoch
    wanted = Wanted(TOPIC, FetchPartition(partition=0, current_leader_epoch=epoch, fetch_offset=7))
    terms = Terms(version=12, bytes_max=9_000, bytes_min=1, read_committed=False, changes_only=False)

    def told() -> int:
        return read([wanted], terms, cast(Any, Local([partition]))).found[0][1].error_code

    partition.lead(LeaderAndEpoch(partition.broker_id + 1, epoch))
    assert told() == ErrorCode.OFFSET_OUT_OF_RANGE, "as from any follower"
    partition.lead(LeaderAndEpoch(NO_LEADER, epoch))
    assert told() == ErrorCode.NOT_LEADER_OR_FOLLOWER
