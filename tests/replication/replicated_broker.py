"""A leader's coordinators and handlers over partitions whose followers exist only as the fetches that a test makes."""

from __future__ import annotations

import asyncio
from asyncio import Future
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from moldau.broker.api import Api
from moldau.broker.context import Context, Peer, Services
from moldau.broker.handlers import TABLE
from moldau.broker.producing.marker_appends import MarkerAppends
from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.coordinator.journal import Flush
from moldau.coordinator.long_work import LongWork
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.groups.coordinator import GroupCoordinator
from moldau.groups.limits import GroupLimits
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.transactions.coordinator import TransactionCoordinator
from moldau.transactions.endings import Ending
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.producers import Initialising
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.batch import TRANSACTIONAL
from moldau.wire.frame import RequestHeader
from moldau.wire.messages import ProduceRequest
from moldau.wire.messages.produce import PartitionProduceData, PartitionProduceResponse, TopicProduceData
from tests.coordinator.partitions import flush_at_once
from tests.log.samples import NOW_MS, TOPIC_ID, batch
from tests.replication.replicated import ALL, LEADER, fetch_all, replicated

TOPICS = ("orders", GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
NAME = "payments"
PEER = Peer("PLAINTEXT", "127.0.0.1", 1)
SECOND_PROTOCOL = 12  # of Produce
TURNS_MAX = 2_000
APIS: dict[ApiKey, Api] = {each.key: each for each in TABLE}


class ReplicatedBroker:
    """One partition of each topic. All but `lone` ones have two followers."""

    def __init__(self, folder: Path, *, lone: tuple[str, ...] = ()) -> None:
        self.partitions = {topic: replicated(folder / topic, topic=topic) for topic in TOPICS}
        for topic in lone:
            self.partitions[topic].lead(LeaderAndEpoch(LEADER, 0), None, now_ms=NOW_MS)
        self.flush: Flush = flush_at_once
        clock = cast(Any, SimpleNamespace(now_ms=lambda: NOW_MS, elapsed_ms=lambda: NOW_MS))
        found = cast(Any, SimpleNamespace(get=self._get))
        shared: dict[str, Any] = {
            "partition_count": lambda: 1,
            "clock": clock,
            "flush": self._flush,
            "long_work": LongWork(),
        }
        self.groups = GroupCoordinator(
            partition_of=lambda index: self._get(GROUP_METADATA_TOPIC, index), limits=GroupLimits(), **shared
        )
        self.markers = MarkerAppends(found, self.groups, clock, shared["flush"])
        ids = count(100)

        async def next_id() -> ProducerId:
            return ProducerId(next(ids))

        self.transactions = TransactionCoordinator(
            partition_of=lambda index: self._get(TRANSACTION_STATE_TOPIC, index),
            limits=TransactionLimits(),
            next_producer_id=next_id,
            write_marker=self.markers.write,
            **shared,
        )
        state = PartitionImage(ALL, ALL, LEADER)
        topics = {topic: TopicImage(topic, TOPIC_ID, (state,)) for topic in TOPICS}
        self.services = cast(
            "Services",
            SimpleNamespace(
                authorization=None,
                config=BrokerConfig(),
                clock=clock,
                partitions=found,
                flusher=SimpleNamespace(flush=shared["flush"]),
                long_work=shared["long_work"],
                groups=self.groups,
                transactions=self.transactions,
                markers=self.markers,
                controller=SimpleNamespace(image=ClusterImage(topics=topics)),
                quotas=None,
                metering=None,
            ),
        )

    def _flush(self, log: PartitionLog) -> Future[None]:
        return self.flush(log)

    def _get(self, topic: str, index: int) -> Partition | None:
        return self.partitions.get(topic) if index == 0 else None

    @property
    def orders(self) -> Partition:
        return self.partitions["orders"]

    def replicate(self, *topics: str) -> None:
        """Followers fetch everything of these, or of all."""
        for topic in topics or TOPICS:
            if self.partitions[topic].replicas is not None:
                fetch_all(self.partitions[topic])

    async def stop(self) -> None:
        await self.groups.stop()
        await self.transactions.stop()

    def call(self, key: ApiKey, request: Any, version: int) -> Any:
        return APIS[key].call(request, Context(self.services, RequestHeader(key, version, 0, "client"), PEER))

    def produce(
        self,
        *values: bytes,
        acks: int = -1,
        timeout_ms: int = 60_000,
        version: int = SECOND_PROTOCOL,
        producer: ProducerIdAndEpoch | None = None,
        sequence: int = 0,
    ) -> Any:
        sent = batch(
            values or [b"v"],
            attributes=0 if producer is None else TRANSACTIONAL,
            producer=(-1, -1, -1) if producer is None else (*producer, sequence),
        )
        request = ProduceRequest(
            transactional_id=None if producer is None else NAME,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name="orders", partition_data=[PartitionProduceData(0, sent)])],
        )
        return self.call(ApiKey.PRODUCE, request, version)

    def produce_with_another(self, topic: str, producer: ProducerIdAndEpoch) -> Any:
        """To another topic without a transaction, and to `orders` the first batch of one."""
        sent = {topic: batch([b"v"]), "orders": batch([b"v"], attributes=TRANSACTIONAL, producer=(*producer, 0))}
        data = [TopicProduceData(name=each, partition_data=[PartitionProduceData(0, sent[each])]) for each in sent]
        request = ProduceRequest(transactional_id=NAME, acks=-1, timeout_ms=60_000, topic_data=data)
        return self.call(ApiKey.PRODUCE, request, SECOND_PROTOCOL)

    async def begin(self, name: str = NAME) -> ProducerIdAndEpoch:
        """A producer whose id and epoch are committed."""
        asking = asyncio.ensure_future(
            self.transactions.init_producer_id(Initialising(transactional_id=name, timeout_ms=60_000))
        )
        reply = await self.while_replicating(asking)
        assert reply.error is ErrorCode.NONE
        return ProducerIdAndEpoch(reply.producer_id, reply.epoch)

    async def end(self, producer: ProducerIdAndEpoch, name: str = NAME) -> ErrorCode:
        request = Ending(
            transactional_id=name, producer_id=producer[0], epoch=producer[1], is_commit=True, api_version=5
        )
        return (await self.transactions.end_txn(request)).error

    async def while_replicating(self, answer: Future[Any]) -> Any:
        await until(answer.done, self.replicate)
        return answer.result()


async def until(is_so: Any, meanwhile: Any = lambda: None) -> None:
    for _ in range(TURNS_MAX):
        if is_so():
            return
        meanwhile()
        await asyncio.sleep(0)
    raise AssertionError("it never came")


async def some_turns() -> None:
    """Time for what should not happen to happen."""
    for _ in range(20):
        await asyncio.sleep(0)


def row(response: Any) -> PartitionProduceResponse:
    ((only,),) = [topic.partition_responses for topic in response.responses]
    assert isinstance(only, PartitionProduceResponse)
    return only


ORDERS = TopicPartition("orders", 0)
