"""Changes of the ISR reach the controller together, one request at a time, until they are answered or void."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.core.errors import ErrorCode
from moldau.replication.channel import Unreachable
from moldau.replication.isr import NAMED_MAX, IsrChanges, alter_partition
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    IsrOfPartition,
    IsrOfTopic,
    PartitionData,
    TopicData,
)
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, TOPIC_ID, batch
from tests.replication.replicated import ALICE, BOB, LEADER, assigned, fetch, replicated

BROKER_EPOCH = 17
LATER = cast(Any, SimpleNamespace(now_ms=lambda: NOW_MS, elapsed_ms=lambda: NOW_MS + 1_000_000))
JUMPED = cast(Any, SimpleNamespace(now_ms=lambda: NOW_MS + 3_600_000, elapsed_ms=lambda: NOW_MS + 1))
NONE = ErrorCode.NONE


class ControllerAsked:
    """A controller that gives the answers of a test, each by a function of the request."""

    def __init__(self, *answers: Callable[[AlterPartitionRequest], Any]) -> None:
        self.answers = list(answers)
        self.requests: list[AlterPartitionRequest] = []
        self.under_way = 0

    async def __call__(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.requests.append(request)
        self.under_way += 1
        assert self.under_way == 1, "one request at a time"
        await asyncio.sleep(0)
        self.under_way -= 1
        answer = self.answers.pop(0)(request) if self.answers else agree(request)
        if isinstance(answer, Exception):
            raise answer
        return cast(AlterPartitionResponse, answer)


def agree(request: AlterPartitionRequest) -> AlterPartitionResponse:
    return each(request, NONE)


def each(request: AlterPartitionRequest, error: ErrorCode) -> AlterPartitionResponse:
    topics = [
        TopicData(
            topic_id=topic.topic_id,
            partitions=[
                PartitionData(
                    partition_index=row.partition_index,
                    error_code=error,
                    leader_id=LEADER,
                    leader_epoch=row.leader_epoch,
                    isr=[member.broker_id for member in row.new_isr_with_epochs],
                    partition_epoch=row.partition_epoch + 1,
                )
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionResponse(topics=topics)


def changes(controller: ControllerAsked) -> IsrChanges:
    return IsrChanges(controller, broker_id=LEADER, broker_epoch=lambda: BROKER_EPOCH, clock=LATER)


def isr(partition: Partition) -> set[int]:
    assert partition.replicas is not None
    return set(partition.replicas.isr)


async def settled(isr_changes: IsrChanges) -> None:
    while isr_changes._task is not None:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.001)


def lagging(folder: Path, index: int = 0) -> Partition:
    """Bob has nothing of what was appended long ago."""
    partition = replicated(folder)
    partition.index = index
    partition.append(batch([b"v"]), now_ms=NOW_MS)
    fetch(partition, ALICE, 1)
    return partition


def test_the_request_names_each_member_with_the_epoch_of_its_fetches(tmp_path: Path) -> None:
    partition = lagging(tmp_path)
    change = partition.shrink_isr(LATER.elapsed_ms())
    assert change is not None
    members = [BrokerState(LEADER, BROKER_EPOCH), BrokerState(ALICE, 1)]
    row = IsrOfPartition(partition_index=0, leader_epoch=0, new_isr_with_epochs=members, partition_epoch=0)
    expected = AlterPartitionRequest(
        broker_id=LEADER, broker_epoch=BROKER_EPOCH, topics=[IsrOfTopic(topic_id=TOPIC_ID, partitions=[row])]
    )
    assert alter_partition({partition: change}, LEADER, BROKER_EPOCH) == expected


@on_a_loop
async def test_late_replicas_of_all_partitions_leave_with_one_request(tmp_path: Path) -> None:
    partitions = [lagging(tmp_path / str(number), number) for number in range(3)]
    controller = ControllerAsked()
    asking = changes(controller)
    asking.shrink(partitions)
    await settled(asking)
    assert [isr(each) for each in partitions] == [{LEADER, ALICE}] * 3
    assert [each.high_watermark for each in partitions] == [1, 1, 1]
    ((topic,),) = [request.topics for request in controller.requests]
    assert [row.partition_index for row in topic.partitions] == [0, 1, 2]
    asking.shrink(partitions)
    assert asking._task is None, "nobody is late any more"


@on_a_loop
async def test_a_wall_clock_that_jumps_takes_nobody_out_of_an_isr(tmp_path: Path) -> None:
    partition = lagging(tmp_path)
    asking = IsrChanges(ControllerAsked(), broker_id=LEADER, broker_epoch=lambda: BROKER_EPOCH, clock=JUMPED)
    asking.shrink([partition])
    assert asking._task is None


@on_a_loop
async def test_a_controller_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    partition = lagging(tmp_path)
    controller = ControllerAsked(
        lambda _: Unreachable("refused"),
        lambda _: AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER),
        lambda _: AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        lambda _: AlterPartitionResponse(),
        lambda request: each(request, ErrorCode.REQUEST_TIMED_OUT),
    )
    asking = changes(controller)
    asking.shrink([partition])
    await settled(asking)
    assert len(controller.requests) == 6
    assert isr(partition) == {LEADER, ALICE}


@on_a_loop
async def test_a_fault_of_ours_does_not_leave_a_change_under_way(tmp_path: Path) -> None:
    partition = lagging(tmp_path)
    asking = changes(ControllerAsked(lambda _: KeyError("a mistake")))
    asking.shrink([partition])
    await settled(asking)
    assert isr(partition) == {LEADER, ALICE}


@on_a_loop
async def test_a_change_that_an_image_made_void_is_asked_for_no_more(tmp_path: Path) -> None:
    partition = lagging(tmp_path)
    other = lagging(tmp_path / "other", 1)

    def image_comes_first(_: AlterPartitionRequest) -> Exception:
        partition.lead(LeaderAndEpoch(ALICE, 1), None, now_ms=NOW_MS)
        return Unreachable("reset")

    controller = ControllerAsked(image_comes_first)
    asking = changes(controller)
    asking.shrink([partition, other])
    await settled(asking)
    named = [[row.partition_index for topic in each.topics for row in topic.partitions] for each in controller.requests]
    assert named == [[0, 1], [1]]


@on_a_loop
async def test_a_refusal_is_final_for_that_change_alone(tmp_path: Path) -> None:
    partition = lagging(tmp_path)
    controller = ControllerAsked(lambda request: each(request, ErrorCode.INELIGIBLE_REPLICA))
    asking = changes(controller)
    asking.shrink([partition])
    await settled(asking)
    assert isr(partition) == {LEADER, ALICE, BOB}
    assert partition.replicas is not None
    assert partition.replicas.pending is None
    asking.shrink([partition])
    await settled(asking)
    assert isr(partition) == {LEADER, ALICE}


@on_a_loop
async def test_what_comes_while_a_request_is_under_way_goes_with_the_next(tmp_path: Path) -> None:
    first, second = lagging(tmp_path / "a"), lagging(tmp_path / "b", 1)
    controller = ControllerAsked()
    asking = changes(controller)
    asking.shrink([first])
    await asyncio.sleep(0)
    asking.shrink([second])
    await settled(asking)
    assert len(controller.requests) == 2
    assert isr(first) == isr(second) == {LEADER, ALICE}


@on_a_loop
async def test_a_replica_joins(tmp_path: Path) -> None:
    partition = replicated(tmp_path, LEADER, ALICE)
    assert assigned(LEADER, ALICE).isr == isr(partition)
    change = fetch(partition, BOB, 0)
    assert change is not None
    asking = changes(ControllerAsked())
    asking.submit(partition, change)
    await settled(asking)
    assert isr(partition) == {LEADER, ALICE, BOB}


@on_a_loop
async def test_one_line_tells_of_the_changes_of_many_partitions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    partitions = [lagging(tmp_path / str(number), number) for number in range(NAMED_MAX + 5)]
    asking = changes(ControllerAsked(lambda request: each(request, ErrorCode.INELIGIBLE_REPLICA)))
    asking.shrink(partitions)
    await settled(asking)
    asked, refused = (record.getMessage() for record in caplog.records)
    assert asked.startswith(f"asking for the ISRs of {len(partitions)} partitions: ")
    assert asked.endswith(" and 5 more")
    assert refused.startswith(f"the ISRs of {len(partitions)} partitions stay as they are: ")
