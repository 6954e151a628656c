"""A request about thousands of things is answered while the loop serves others, whatever its frame's size.

Each handler is called as it is on the loop of a broker, with each of its arrays as long as one may be, and must not
answer before the loop had some turns.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from inspect import iscoroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.api import Api
from moldau.broker.context import Context, Peer
from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.fetch_sessions import FetchSessions
from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
from moldau.broker.handlers.table import TABLE
from moldau.broker.producing.marker_appends import MarkerAppends
from moldau.broker.replication import Replication
from moldau.broker.requests.delayed_response import DelayedResponse, future_of
from moldau.broker.topics.partitions import Partitions
from moldau.controller.image import ClusterImage, Draft, PartitionImage, TopicImage
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicId
from moldau.core.limits import REQUEST_ELEMENTS_MAX
from moldau.groups.coordinator import GroupCoordinator
from moldau.groups.limits import GroupLimits
from moldau.transactions.coordinator import TransactionCoordinator
from moldau.transactions.limits import TransactionLimits
from moldau.wire.api import ApiKey
from moldau.wire.frame import RequestHeader
from moldau.wire.schema import Field, Kind
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import flush_at_once, new_partition
from tests.hostile.longest import longest, paths

ELEMENTS = 10_000
TURNS_MIN = 3

# What takes less than some milliseconds however long it is, or refuses what is that long.
QUICK = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT,  # frozen sets of names
    ApiKey.CREATE_ACLS,  # refused as a whole
    ApiKey.CREATE_DELEGATION_TOKEN,  # a token has at most a thousand renewers
    ApiKey.DESCRIBE_DELEGATION_TOKEN,  # refused without a login; a thread makes a set of many owners
    ApiKey.DESCRIBE_CLIENT_QUOTAS,  # three kinds, each once
    ApiKey.JOIN_GROUP,  # a member has at most a hundred protocols
    ApiKey.LIST_CONFIG_RESOURCES,  # five kinds
    ApiKey.LIST_GROUPS,  # the filters are two sets
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.SYNC_GROUP,  # one dict
}
QUICK_PATHS = {
    (ApiKey.FETCH, ("forgotten_topics_data",)),  # forgotten by name, which needs no look at them
    (ApiKey.FETCH, ("forgotten_topics_data", "partitions")),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, ("topics", "partitions", "replicas")),  # compared as a whole
    (ApiKey.ALTER_PARTITION, ("topics", "partitions", "new_isr")),
    (ApiKey.ALTER_PARTITION, ("topics", "partitions", "new_isr_with_epochs")),
}
# For the controller, who is not here.
CONTROLLED = {ApiKey.CREATE_TOPICS, ApiKey.UPDATE_FEATURES, ApiKey.FIND_COORDINATOR}


def cases() -> Iterator[Any]:
    for row in (*TABLE, *BETWEEN_BROKERS):
        if row.parts or row.key in QUICK | CONTROLLED:
            continue  # large_requests.py gives the handler some elements at a time, or there is nothing to do
        cls: Any = row.request
        oldest, newest = row.versions
        versions = [newest] + [oldest] * (set(paths(cls, oldest)) != set(paths(cls, newest)))
        for version in versions:
            for path in paths(cls, version):
                if (row.key, path) not in QUICK_PATHS:
                    yield pytest.param(row, version, path, id=f"{row.key.name}-v{version}-{'.'.join(path)}")


def value(field: Field, index: int, is_alone: bool) -> Any:
    if field.type is Kind.STRING:
        return "one" if is_alone else f"unknown-{index}"
    if field.type is Kind.UUID:
        return index.to_bytes(16, "big")
    if field.type in (Kind.BYTES, Kind.RECORDS):
        return b""
    if field.type is not Kind.BOOL and "partition" in field.name:
        return index
    if field.name in ("session_epoch", "acks"):
        return -1
    return 0 if field.is_array else field.default()


def image() -> ClusterImage:
    """One of the topics that are asked for exists, which must not make the answer about all others a short one."""
    draft = Draft(ClusterImage())
    draft.put_topic(TopicImage("unknown-1", TopicId((1).to_bytes(16, "big")), (PartitionImage((0,), (0,), 0),)))
    return draft.finish()


@contextmanager
def services(folder: Path) -> Iterator[Any]:
    """Those of a broker with coordinators, but without partitions of users."""
    own = {index: new_partition(folder, index) for index in range(2)}
    partitions, clock, long_work = Partitions(), SystemClock(), LongWork()
    groups = GroupCoordinator(
        partition_of=own.get,
        partition_count=lambda: len(own),
        limits=GroupLimits(),
        clock=clock,
        flush=flush_at_once,
        long_work=long_work,
    )

    async def next_producer_id() -> ProducerId:
        return ProducerId(1)

    transactions = TransactionCoordinator(
        partition_of=own.get,
        partition_count=lambda: len(own),
        limits=TransactionLimits(),
        clock=clock,
        flush=flush_at_once,
        long_work=long_work,
        next_producer_id=next_producer_id,
        write_marker=lambda *_: ErrorCode.NONE,
    )

    async def write(decide: Callable[[ClusterImage], Decision[Any]]) -> Any:
        """Each decision is a turn of the loop, as it is where one is written down."""
        await asyncio.sleep(0)
        return decide(image()).reply

    def nobody() -> Any:
        raise AssertionError("there is no other broker")

    with ThreadPoolExecutor(1) as executor, closing(ColdReads()) as cold_reads:
        shown = image()
        yield SimpleNamespace(
            authorization=None,
            image=shown,
            broker_id=0,
            itself=None,
            config=BrokerConfig.of({"auto.create.topics.enable": "false"}),
            clock=clock,
            controller=SimpleNamespace(image=shown, write=write),
            partitions=partitions,
            replication=Replication(
                0, partitions, channels=nobody, image=image, config=BrokerConfig, clock=clock, flush=flush_at_once
            ),
            directories=SimpleNamespace(paths=[], failures={}),
            fetch_sessions=FetchSessions(sessions_max=10, eviction_ms_min=0, seed=0),
            long_work=long_work,
            cold_reads=cold_reads,
            executor=executor,
            computing=executor,
            groups=groups,
            transactions=transactions,
            markers=MarkerAppends(partitions, groups, clock, flush_at_once),
            quotas=None,
            metering=None,
        )


def started(answer: Any) -> Future[Any]:
    if isinstance(answer, DelayedResponse):
        return future_of(answer)
    assert isinstance(answer, Future) or iscoroutine(answer), "it was answered at once"
    return asyncio.ensure_future(answer)


@pytest.mark.parametrize(("row", "version", "path"), [*cases()])
@on_a_loop
async def test_the_loop_has_turns_before_the_answer(
    row: Api, version: int, path: tuple[str, ...], tmp_path: Path
) -> None:
    request = longest(row.request, version, path, elements_max=REQUEST_ELEMENTS_MAX, count=ELEMENTS, value=value)
    header = RequestHeader(row.key, version, 1, "client")
    with services(tmp_path) as built:
        answer = started(row.call(request, Context(built, header, Peer("PLAINTEXT", "127.0.0.1", 1))))
        turns = 0
        while not answer.done():
            await asyncio.sleep(0)
            turns += 1
        assert answer.result() is not None
        assert turns >= TURNS_MIN
