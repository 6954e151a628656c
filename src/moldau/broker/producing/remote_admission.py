"""Asking a transaction's coordinator on another broker about a partition that is led here (AddPartitionsToTxn)."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.gathered_questions import GatheredQuestions
from moldau.broker.peers import Peers
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.replication.channel_connection import ChannelError
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

VERSION = 5
PURPOSE = "admission"


class Admitted(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    where: TopicPartition
    adds: bool


class RemoteAdmission:
    def __init__(self, peers: Peers, *, timeout_ms: int) -> None:
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._gathered = GatheredQuestions(self._ask, failed=ErrorCode.NETWORK_EXCEPTION)

    def admit(
        self,
        coordinator: int,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        where: TopicPartition,
        *,
        adds: bool,
    ) -> Future[ErrorCode]:
        """The coordinator's answer; NETWORK_EXCEPTION when it gives none."""
        return self._gathered.put(coordinator, Admitted(transactional_id, producer, where, adds))

    async def close(self) -> None:
        await self._gathered.close()

    async def _ask(self, coordinator: int, questions: Sequence[Admitted]) -> list[ErrorCode]:
        request = AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in questions])
        channel = self._peers.channels.to(coordinator, PURPOSE)
        response: AddPartitionsToTxnResponse = await channel.ask(request, VERSION, timeout_ms=self._timeout_ms)
        if response.error_code != ErrorCode.NONE:
            return [ErrorCode(response.error_code)] * len(questions)
        answers = [
            ErrorCode(partition.partition_error_code)
            for result in response.results_by_transaction
            for topic in result.topic_results
            for partition in topic.results_by_partition
        ]
        if len(answers) != len(questions):
            raise ChannelError(f"broker {coordinator} answered {len(answers)} of {len(questions)} questions")
        return answers


def _transaction(question: Admitted) -> AddPartitionsToTxnTransaction:
    """One for each partition: of several in one, all are added or none, and these are separate questions."""
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer.producer_id,
        producer_epoch=question.producer.epoch,
        verify_only=not question.adds,
        topics=[AddPartitionsToTxnTopic(question.where.topic, [question.where.partition])],
    )
