"""Requests about very many things are answered in slices, and their answers are the same."""

from __future__ import annotations

import asyncio
import threading
from asyncio import Future
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast

import pytest

import moldau
from moldau.broker.context import Context, Peer, Services
from moldau.broker.requests.answers import ROWS_MAX, Encoded, in_thread, in_turn
from moldau.coordinator.long_work import SLICE_S, LongWork
from moldau.core.errors import ErrorCode
from moldau.wire.codec import decode
from moldau.wire.frame import RequestHeader
from moldau.wire.messages import CreateTopicsRequest, DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from moldau.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.coordinator.loops import on_a_loop
from tests.hostile.attacker import Attacker

VERSION = 4
COUNT = ROWS_MAX + 500
WAIT_S_MAX = 20.0


def context() -> Context:
    services = SimpleNamespace(
        long_work=LongWork(), executor=ThreadPoolExecutor(1), computing=ThreadPoolExecutor(1), metering=None
    )
    header = SimpleNamespace(api_version=VERSION)
    return Context(cast(Services, services), cast(RequestHeader, header), Peer("PLAINTEXT", "127.0.0.1", 1))


def shape(names: list[str]) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])


@on_a_loop
async def test_little_is_answered_at_once() -> None:
    assert in_turn(["a", "b"], str.upper, shape, context()) == shape(["A", "B"])


@on_a_loop
async def test_answers_that_come_later_are_waited_for() -> None:
    later: Future[str] = asyncio.get_running_loop().create_future()
    answers: dict[str, str | Future[str]] = {"first": later, "second": "b"}
    answer = in_turn(answers, lambda item: answers[item], shape, context())
    assert isinstance(answer, Future)
    later.set_result("a")
    assert await answer == shape(["a", "b"])


@on_a_loop
async def test_others_have_their_turn_between_two_slices() -> None:
    loop = asyncio.get_running_loop()
    order: list[str] = []

    def slow(name: str) -> str:
        until_s = loop.time() + SLICE_S
        while loop.time() < until_s:
            pass
        order.append(name)
        loop.call_soon(order.append, "other")
        return name

    answer = in_turn(["a", "b", "c"], slow, shape, context())
    assert isinstance(answer, Future)
    assert await answer == shape(["a", "b", "c"])
    assert order[:5] == ["a", "other", "b", "other", "c"]


@on_a_loop
async def test_very_many_rows_are_encoded_beforehand() -> None:
    names = [f"group-{number}" for number in range(COUNT)]
    answer = in_turn(names, lambda name: name, shape, context())
    assert isinstance(answer, Future)
    encoded = await answer
    assert isinstance(encoded, Encoded)
    body = memoryview(b"".join(encoded.body))
    assert decode(ListGroupsResponse, VERSION, body)[0] == shape(names)


@on_a_loop
async def test_an_fsync_does_not_wait_for_answers_that_take_long() -> None:
    asked, goes_on = context(), threading.Event()
    answers = [asyncio.ensure_future(in_thread(goes_on.wait, asked)) for _ in range(8)]
    await asyncio.sleep(0)
    synced = asyncio.get_running_loop().run_in_executor(asked.services.executor, lambda: "synced")
    try:
        assert await asyncio.wait_for(synced, WAIT_S_MAX) == "synced"
    finally:
        goes_on.set()
    assert await asyncio.gather(*answers) == [True] * 8


@pytest.fixture(scope="module")
def client() -> Iterator[Attacker]:
    with moldau.run() as broker, Attacker((broker.host, broker.port)) as peer:
        peer.ask(FindCoordinatorRequest(coordinator_keys=["any"]), 4)
        yield peer


def test_thousands_of_groups_over_the_wire(client: Attacker) -> None:
    names = [f"unknown-{number}" for number in range(COUNT)]
    described = client.ask(DescribeGroupsRequest(groups=names), 5)
    assert [group.group_id for group in described.groups] == names
    deleted = client.ask(DeleteGroupsRequest(groups_names=names), 2)
    assert [result.group_id for result in deleted.results] == names
    assert {result.error_code for result in deleted.results} == {ErrorCode.GROUP_ID_NOT_FOUND}
    found = client.ask(FindCoordinatorRequest(coordinator_keys=names), 4)
    assert [each.key for each in found.coordinators] == names


def test_a_commit_in_several_parts_over_the_wire(client: Attacker) -> None:
    count = 1_000
    topic = CreatableTopic(name="many", num_partitions=count, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    rows = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index * 3) for index in range(count + 1)
    ]
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="many", partitions=rows)])
    committed = client.ask(request, 8).topics[0].partitions
    assert [each.partition_index for each in committed] == list(range(count + 1))
    assert [each.error_code for each in committed[:-1]] == [ErrorCode.NONE] * count
    assert committed[-1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "none")]
    fetched = client.ask(OffsetFetchRequest(groups=groups), 8)
    assert [group.group_id for group in fetched.groups] == ["g", "none"]
    offsets = {each.partition_index: each.committed_offset for each in fetched.groups[0].topics[0].partitions}
    assert offsets == {index: index * 3 for index in range(count)}
