"""The first batch of a producer was refused: which of those behind it may be taken for its first?"""

from __future__ import annotations

from time import monotonic

from moldau.core.errors import ErrorCode
from moldau.wire import messages
from moldau.wire.batch import TRANSACTIONAL, build_batch
from moldau.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from tests.broker.handlers.wire import ANSWER_WAIT_S, RECORD_TIME_MS, Wire

VERIFIED_VERSION = 11  # the coordinator is asked, and what is not part of the transaction is refused


def init(wire: Wire, transactional_id: str | None) -> int:
    """A new producer's id; its epoch is 0. The topic of transactions is made for the first who asks for it."""
    deadline_s = monotonic() + ANSWER_WAIT_S
    find = messages.FindCoordinatorRequest(key=transactional_id or "", key_type=1)
    while transactional_id and wire.ask(find, 3, messages.FindCoordinatorResponse).error_code:
        assert monotonic() < deadline_s
    request = messages.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    while (answer := wire.ask(request, 4, messages.InitProducerIdResponse)).error_code:
        assert monotonic() < deadline_s, answer
    assert answer.producer_epoch == 0
    return answer.producer_id


def produce(
    wire: Wire, name: str, producer_id: int, sequence: int, *, transactional_id: str | None = None, size: int = 1
) -> ErrorCode:
    batch = build_batch(
        [Record(0, RECORD_TIME_MS, None, b"x" * size)],
        attributes=TRANSACTIONAL if transactional_id else 0,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    data = PartitionProduceData(index=0, records=batch)
    request = messages.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=20_000,
        topic_data=[TopicProduceData(name=name, partition_data=[data])],
    )
    (result,) = wire.ask(request, VERIFIED_VERSION, messages.ProduceResponse).responses[0].partition_responses
    return ErrorCode(result.error_code)


def add(wire: Wire, name: str, producer_id: int, transactional_id: str) -> None:
    request = messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0])],
    )
    (topic,) = wire.ask(request, 3, messages.AddPartitionsToTxnResponse).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.NONE


def test_no_batch_overtakes_the_one_that_was_not_verified(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    producer_id = init(wire, name)
    refused = produce(wire, name, producer_id, 0, transactional_id=name)
    assert refused is ErrorCode.TRANSACTION_ABORTABLE
    add(wire, name, producer_id, name)
    overtaking = produce(wire, name, producer_id, 1, transactional_id=name)
    assert overtaking is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [produce(wire, name, producer_id, number, transactional_id=name) for number in (0, 1)] == [
        ErrorCode.NONE
    ] * 2


def test_a_batch_may_overtake_one_that_can_never_be_stored(wire: Wire, name: str) -> None:
    wire.create_topic(name, max_message_bytes="1000")
    producer_id = init(wire, None)
    assert produce(wire, name, producer_id, 0, size=2_000) is ErrorCode.MESSAGE_TOO_LARGE
    assert produce(wire, name, producer_id, 1) is ErrorCode.NONE
