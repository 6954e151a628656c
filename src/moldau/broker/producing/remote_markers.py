"""Markers of transactions that are coordinated here, on their way to leaders on other brokers (WriteTxnMarkers)."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.gathered_questions import GatheredQuestions
from moldau.broker.peers import Peers
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.replication.channel_connection import ChannelError
from moldau.transactions.markers_due import MarkersDue
from moldau.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

VERSION = 2
PURPOSE = "markers"


class MarkerForPartition(NamedTuple):
    where: TopicPartition
    due: MarkersDue
    coordinator_epoch: int


class RemoteMarkers:
    def __init__(self, peers: Peers, *, timeout_ms: int) -> None:
        self._peers = peers
        self._timeout_ms = timeout_ms
        # A leader that does not answer may be dead, and another one elected; the coordinator looks again then.
        self._gathered = GatheredQuestions(self._ask, failed=ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def write(self, leader: int, where: TopicPartition, due: MarkersDue, coordinator_epoch: int) -> Future[ErrorCode]:
        """Done when the leader has committed the marker, or refused it."""
        return self._gathered.put(leader, MarkerForPartition(where, due, coordinator_epoch))

    async def close(self) -> None:
        await self._gathered.close()

    async def _ask(self, leader: int, markers: Sequence[MarkerForPartition]) -> list[ErrorCode]:
        request = WriteTxnMarkersRequest(markers=[_marker(each) for each in markers])
        channel = self._peers.channels.to(leader, PURPOSE)
        response: WriteTxnMarkersResponse = await channel.ask(request, VERSION, timeout_ms=self._timeout_ms)
        answers = [
            ErrorCode(partition.error_code)
            for marker in response.markers
            for topic in marker.topics
            for partition in topic.partitions
        ]
        if len(answers) != len(markers):
            raise ChannelError(f"broker {leader} answered for {len(answers)} of {len(markers)} markers")
        return answers


def _marker(marker: MarkerForPartition) -> WritableTxnMarker:
    """One for each partition, so that the answers are in the order of the questions."""
    due = marker.due
    return WritableTxnMarker(
        producer_id=due.producer.producer_id,
        producer_epoch=due.producer.epoch,
        transaction_result=due.is_commit,
        topics=[WritableTxnMarkerTopic(marker.where.topic, [marker.where.partition])],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=due.transaction_version,
    )
