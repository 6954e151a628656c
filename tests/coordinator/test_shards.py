"""A partition whose state was lost in a failure is opened again, whether anybody asks or not."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest

from moldau.coordinator import shards
from moldau.coordinator.journal import StoredRecord
from moldau.coordinator.long_work import LongWork
from moldau.coordinator.runtime import Runtime
from moldau.coordinator.shards import Shards, nobody_hears
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.log.errors import LogError
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Partition
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import flush_at_once, new_partition


class Numbers:
    """A machine that remembers numbers."""

    def __init__(self) -> None:
        self.known: list[int] = []

    def apply(self, fact: int) -> None:
        self.known.append(fact)

    def encode(self, fact: int) -> tuple[bytes, bytes]:
        return b"number", bytes([fact])

    def decode(self, stored: StoredRecord) -> int:
        assert stored.value is not None
        return stored.value[0]

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]:
        return Decision((), None)

    def decide_started(self, now_ms: int) -> Decision[None]:
        return Decision((), None)


class FullLog:
    """A log on a disk that has no room now and then."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append_as_leader(self, records: memoryview, **how: Any) -> Any:
        if self.is_full:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
        return self._log.append_as_leader(records, **how)


class Clock:
    def now_ms(self) -> int:
        return 1_000

    def elapsed_ms(self) -> int:
        return 1_000


def opened(*partitions: Partition, machine: type[Numbers] = Numbers) -> Shards[Numbers]:
    return Shards(
        machine,
        partition_of=lambda index: partitions[index],
        partition_count=lambda: len(partitions),
        clock=Clock(),
        flush=flush_at_once,
        long_work=LongWork(),
    )


def remember(runtime: Runtime[Numbers], number: int) -> Any:
    return runtime.write(lambda *_: Decision((number,), None), nobody_hears, at_once=True)


@on_a_loop
async def test_after_a_failed_append_the_state_is_read_again_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "REOPEN_S", 0.01)
    partition = new_partition(tmp_path)
    disk: Any = FullLog(partition.log)
    partition.log = disk
    numbers = opened(partition)
    runtime = numbers.find(0)
    assert isinstance(runtime, Runtime)
    remember(runtime, 1)
    disk.is_full = True
    remember(runtime, 2)
    assert runtime.is_stopped
    disk.is_full = False
    while not (again := list(numbers.loaded())):  # noqa: ASYNC110 - there is nobody who could tell
        await asyncio.sleep(0.01)
    assert again[0].machine.known == [1], "what was not written never happened"
    await numbers.stop()


@on_a_loop
async def test_a_disk_that_stays_full_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shards, "REOPEN_S", 0.01)
    partition = new_partition(tmp_path)
    disk: Any = FullLog(partition.log)
    partition.log = disk
    numbers = opened(partition)
    disk.is_full = True
    for number in range(5):
        while isinstance(runtime := numbers.find(0), ErrorCode):  # noqa: ASYNC110 - there is nobody who could tell
            await asyncio.sleep(0.01)
        remember(runtime, number)
        assert runtime.is_stopped
    await numbers.stop()
    assert caplog.messages == ["a coordinator's facts could not be written: KAFKA_STORAGE_ERROR: no room"]


@on_a_loop
async def test_who_stops_opens_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "REOPEN_S", 0.01)
    partition = new_partition(tmp_path)
    disk: Any = FullLog(partition.log)
    partition.log = disk
    numbers = opened(partition)
    runtime = numbers.find(0)
    assert isinstance(runtime, Runtime)
    disk.is_full = True
    remember(runtime, 1)
    await numbers.stop()
    await asyncio.sleep(0.05)
    assert not list(numbers.loaded())


class Clumsy(Numbers):
    """A machine that fails to start once."""

    failures = 1

    def decide_started(self, now_ms: int) -> Decision[None]:
        if type(self).failures:
            type(self).failures -= 1
            raise ZeroDivisionError
        return super().decide_started(now_ms)


@on_a_loop
async def test_one_that_cannot_start_keeps_no_other_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "REOPEN_S", 0.01)
    partitions = [new_partition(tmp_path / name) for name in ("one", "two")]
    for number, partition in enumerate(partitions):
        numbers = opened(partition)
        runtime = numbers.find(0)
        assert isinstance(runtime, Runtime)
        remember(runtime, number)
        await numbers.stop()
    Clumsy.failures = 1
    both = opened(*partitions, machine=Clumsy)
    both.resume()
    while len(loaded := list(both.loaded())) < 2:  # noqa: ASYNC110 - there is nobody who could tell
        await asyncio.sleep(0.01)
    assert sorted(number for each in loaded for number in each.machine.known) == [0, 1]
    await both.stop()
