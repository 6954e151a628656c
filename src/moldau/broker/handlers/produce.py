"""Produce, v3 to v13: append batches to partitions, each on its own.

v3-v8 name topics and use the plain encoding; v8 adds errors per record; v10 tells who leads instead; v13 names topics
by id. A partition that can't be written to never hurts another one of the same request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.leaders import node_endpoints
from moldau.broker.producing.delayed_produce import Admission, DelayedProduce, Uncommitted, Unverified, not_flushed, own
from moldau.broker.producing.refusals import all_refused, moved_to, name_leader, not_here, refused
from moldau.broker.producing.transaction_verification import (
    ADDED_BY_WRITING_SINCE,
    ADMISSION_S_MAX,
    admission,
    check_admitted,
)
from moldau.broker.requests.answers import Encoded, encoded
from moldau.coordinator.long_work import Slice
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.ids import Offset, TopicPartition
from moldau.log.appending.validation import UNFOLDED_BYTES_AT_ONCE, Validated, check_request
from moldau.log.errors import LogError
from moldau.replication.partition import Partition
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.batch import TRANSACTIONAL, read_header
from moldau.wire.messages import ProduceRequest, ProduceResponse
from moldau.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from moldau.wire.records import InvalidRecord

if TYPE_CHECKING:
    from moldau.broker.producing.allowed_topics import AllowedPartitions
    from moldau.broker.topics.partitions import Partitions

TOPIC_IDS_SINCE = 13
ADMIN_CLIENT_ID = "__admin_client"
ALL = -1
ACKS_ALLOWED = (ALL, 0, 1)
PARTITIONS_AT_ONCE = 200  # so many batches are appended in two to five milliseconds
ATTRIBUTES_LOW_AT = 22


class Work:
    """What holds for all partitions of one request, and what they leave to be done at its end."""

    __slots__ = (
        "acks", "checked", "client_id", "delayed", "denied", "has_refusal", "now_ms", "partitions", "services",
        "timeout_ms", "transactional_id", "version",
    )  # fmt: skip

    def __init__(self, request: ProduceRequest, context: Context) -> None:
        self.acks = request.acks
        self.transactional_id = request.transactional_id
        self.version = context.version
        self.client_id = context.header.client_id
        self.services = context.services
        self.partitions: Partitions | AllowedPartitions = context.services.partitions
        self.denied: Set[str] | None = None  # topics that the client may not write to
        self.now_ms = context.services.clock.now_ms()
        self.timeout_ms = request.timeout_ms
        self.has_refusal = False
        self.delayed: DelayedProduce | None = None
        self.checked: dict[int, Validated | ApiError] | None = None

    def delay(self) -> DelayedProduce:
        if self.delayed is None:
            self.delayed = DelayedProduce()
        return self.delayed


Answer: TypeAlias = "ProduceResponse | asyncio.Future[ProduceResponse | Encoded[ProduceResponse] | None] | None"


@api(ApiKey.PRODUCE, ProduceRequest, versions=(3, 13))
def produce(request: ProduceRequest, context: Context) -> Answer:
    work = Work(request, context)
    authorization = context.services.authorization
    if authorization is not None:
        error = authorization.restrict_produce(request, work, context)
        if error is not None:
            return _response(all_refused(request, error), work, context)
    topics_asked = request.topic_data
    is_for_one = len(topics_asked) < 2 and not (topics_asked and len(topics_asked[0].partition_data) > 1)
    if not is_for_one and sum(len(topic.partition_data) for topic in topics_asked) > PARTITIONS_AT_ONCE:
        own_records(request)
        return context.start(_store_in_slices(request, work, context))
    long = _long_batches(request, work)
    if long:
        own_records(request)
        return context.start(_store_opened(request, work, context, long))
    topics: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        if topic.partition_data:
            row = TopicProduceResponse(topic.name, topic.topic_id, [])
            for data in topic.partition_data:
                row.partition_responses.append(_store(topic, data, work))
            topics.append(row)
    if work.delayed is not None:
        work.delayed.own_records()
        answer: asyncio.Future[Any] = context.start(_respond_later(topics, work, context, work.delayed))
        if work.delayed.unverified:  # also when it is cancelled before it begins
            answer.add_done_callback(work.delayed.release)
        return answer
    return _response(topics, work, context)


async def _store_admitted(topics: list[TopicProduceResponse], work: Work, delayed: DelayedProduce) -> None:
    """Append what coordinators were asked about, and put what came of it where it belongs in the response."""
    made: dict[int, PartitionProduceResponse] = {}
    turn = Slice(asyncio.get_running_loop())
    try:
        await asyncio.wait([each.answer for each in delayed.unverified], timeout=ADMISSION_S_MAX)
        for unverified in delayed.unverified:
            answer = unverified.answer
            error = answer.result() if answer.done() else ErrorCode.COORDINATOR_NOT_AVAILABLE
            admitted = Admission(error, unverified.guard)
            made[id(unverified.row)] = _store(unverified.topic, unverified.data, work, admitted)
            if turn.is_over:
                await work.services.long_work.wait()
                turn = Slice(asyncio.get_running_loop())
    finally:
        delayed.release()
    for topic in topics:
        topic.partition_responses = [made.get(id(row), row) for row in topic.partition_responses]


def own_records(request: ProduceRequest) -> None:
    own([data for topic in request.topic_data for data in topic.partition_data])


async def _respond_later(
    topics: list[TopicProduceResponse], work: Work, context: Context, delayed: DelayedProduce
) -> ProduceResponse | None:
    """When the coordinators of transactions have answered, the disk and the other replicas have the records."""
    if delayed.unverified:
        await _store_admitted(topics, work, delayed)
    try:
        for each in await delayed.acknowledged(work.services, work.timeout_ms):
            work.has_refusal = True
            name_leader(each.row, each.partition, work.version)
    except LogError as wrong:
        not_flushed(topics, wrong)
    return _response(topics, work, context)


def _long_batches(request: ProduceRequest, work: Work) -> list[tuple[Partition, PartitionProduceData]]:
    """Those that are validated in a thread, for they must be opened and may hold very much."""
    found = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None and len(data.records) > UNFOLDED_BYTES_AT_ONCE:
                partition = _find(topic, data, work)
                if partition is not None and partition.log.validator.takes_long(data.records, work.now_ms):
                    found.append((partition, data))
    return found


async def _store_opened(
    request: ProduceRequest,
    work: Work,
    context: Context,
    long: list[tuple[Partition, PartitionProduceData]],
) -> ProduceResponse | Encoded[ProduceResponse] | None:
    checked: dict[int, Validated | ApiError] = {}
    for partition, data in long:
        validate = partial(_checked, partition, data, work.now_ms)
        checked[id(data)] = await context.compute(validate, work.services.executor)
    work.checked = checked
    return await _store_in_slices(request, work, context)


def _checked(partition: Partition, data: PartitionProduceData, now_ms: int) -> Validated | ApiError:
    assert isinstance(data.records, memoryview), "a missing one is not opened"
    try:
        return partition.log.validator.validate(data.records, now_ms)
    except ApiError as wrong:
        return wrong.with_traceback(None)  # for it holds what was unfolded


async def _store_in_slices(
    request: ProduceRequest, work: Work, context: Context
) -> ProduceResponse | Encoded[ProduceResponse] | None:
    """Thousands of partitions take tens of milliseconds, in which others want their turn."""
    asked = [each for each in request.topic_data if each.partition_data]
    topics = [TopicProduceResponse(each.name, each.topic_id, []) for each in asked]
    turn = Slice(asyncio.get_running_loop())
    for topic, row in zip(asked, topics, strict=True):
        for data in topic.partition_data:
            row.partition_responses.append(_store(topic, data, work))
            if turn.is_over:
                await work.services.long_work.wait()
                turn = Slice(asyncio.get_running_loop())
    if work.delayed is None:
        response = _response(topics, work, context)
    else:
        response = await _respond_later(topics, work, context, work.delayed)
    return None if response is None else await encoded(lambda: response, context)


def _response(topics: list[TopicProduceResponse], work: Work, context: Context) -> ProduceResponse | None:
    if work.acks == 0:
        if work.has_refusal:
            raise ProtocolViolation("a record could not be appended and acks=0 leaves no other way to say so")
        return None
    response = ProduceResponse(responses=topics)
    if work.has_refusal and (moved := moved_to(topics)):
        image = context.services.controller.image
        response.node_endpoints = node_endpoints(image, moved, context.peer.listener_name)
    return response


def _find(topic: TopicProduceData, data: PartitionProduceData, work: Work) -> Partition | None:
    partitions = work.partitions
    if work.version >= TOPIC_IDS_SINCE:
        return partitions.get_by_id(topic.topic_id, data.index)
    return partitions.get(topic.name, data.index)


def _store(
    topic: TopicProduceData, data: PartitionProduceData, work: Work, admitted: Admission | None = None
) -> PartitionProduceResponse:
    partition = _find(topic, data, work)
    try:
        return _append(partition, topic, data, work, admitted)
    except ApiError as wrong:
        work.has_refusal = True
        # The error must not outlive this block: its traceback holds what was unfolded, and a name for it a cycle.
        if partition is None and (wrong.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or work.denied is not None):
            topic_id = topic.topic_id if work.version >= TOPIC_IDS_SINCE else None
            reason = not_here(topic.name, topic_id, index=data.index, services=work.services, denied=work.denied)
            return refused(reason or wrong, data, partition=None, version=work.version)
        return refused(wrong, data, partition=partition, version=work.version)


def _append(
    partition: Partition | None,
    topic: TopicProduceData,
    data: PartitionProduceData,
    work: Work,
    admitted: Admission | None,
) -> PartitionProduceResponse:
    if partition is None or not partition.is_leader or work.acks not in ACKS_ALLOWED:
        raise _not_written(partition, work)
    records = data.records
    check_request(records, work.version)
    assert isinstance(records, memoryview), "the decoder gives views, and check_request refuses a missing one"
    verified = False
    if records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL:
        answer = _verify(partition, records, work, admitted)
        if not isinstance(answer, bool):
            return _wait_for(answer, partition, topic, data, work)
        verified = answer
    if partition.is_internal:
        _refuse_internal(partition, work)
    checked = None if work.checked is None else work.checked.get(id(data))
    if partition.replicas is not None and work.acks == ALL:
        partition.check_in_sync()
    try:
        if isinstance(checked, ApiError):
            raise checked
        appended = partition.append(records, now_ms=work.now_ms, verified=verified, checked=checked)
    except InvalidRecord as wrong:
        raise LogError(wrong.code, wrong.message) from None
    # By position: names cost a quarter of a microsecond.
    row = PartitionProduceResponse(
        data.index, 0, appended.first_offset, appended.log_append_time_ms, appended.log_start_offset
    )
    if partition.high_watermark <= appended.last_offset and work.acks == ALL:
        end_offset, epoch = Offset(appended.last_offset + 1), partition.leader_epoch
        work.delay().uncommitted.append(Uncommitted(partition, end_offset, row, epoch))
    if partition.log.must_flush and work.acks:
        work.delay().to_flush.append(partition.log)
    return row


def _not_written(partition: Partition | None, work: Work) -> ApiError:
    if work.acks not in ACKS_ALLOWED:
        return ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else partition.refusal)


def _wait_for(
    answer: asyncio.Future[ErrorCode],
    partition: Partition,
    topic: TopicProduceData,
    data: PartitionProduceData,
    work: Work,
) -> PartitionProduceResponse:
    """A marker that comes before the answer ends the transaction that the answer is about: a guard tells so."""
    assert isinstance(data.records, memoryview), "it was read"
    row = PartitionProduceResponse(data.index)
    producers = partition.log.producers
    guard = producers.guard(read_header(data.records, 0).producer_id)
    work.delay().unverified.append(Unverified(topic, data, answer, producers, guard, row))
    return row


def _verify(
    partition: Partition, records: memoryview, work: Work, admitted: Admission | None
) -> bool | asyncio.Future[ErrorCode]:
    """Ask the coordinator about the first batch of a transaction here; the ones after it need no more than the log.

    Its answer may have to be waited for; `admitted` is an answer that was.
    """
    if work.transactional_id is None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if partition.is_internal and work.version >= ADDED_BY_WRITING_SINCE:
        _refuse_internal(partition, work)  # or the transaction would have it, and end with a marker there
    header = read_header(records, 0)
    producers = partition.log.producers
    if producers.is_open(header.producer_id, header.producer_epoch) or producers.is_repeated(header):
        return False
    answer = (
        admission(
            work.services,
            work.transactional_id,
            ProducerIdAndEpoch(header.producer_id, header.producer_epoch),
            TopicPartition(partition.topic, partition.index),
            adds=work.version >= ADDED_BY_WRITING_SINCE,
        )
        if admitted is None
        else admitted.error
    )
    if isinstance(answer, asyncio.Future):
        return answer
    try:
        check_admitted(answer, version=work.version)
        if admitted is not None and not producers.holds(admitted.guard):
            raise ApiError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
    except ApiError:
        producers.refuse(header)
        raise
    return True


def _refuse_internal(partition: Partition, work: Work) -> None:
    """The coordinators' topics are for them alone, and for whoever says, as Apache Kafka's own tools do, who it is."""
    if work.client_id != ADMIN_CLIENT_ID:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}")
