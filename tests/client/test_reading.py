"""A thread that reads from one broker, and a broker that answers as it likes."""

from __future__ import annotations

import queue
from typing import Any, cast

from moldau.client.connection import Connection
from moldau.client.fetched import FetchedRecord, read_partition
from moldau.client.reading import USUAL, Failed, Leader, Lost, Read
from moldau.core.errors import ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


class Odd:
    """A connection to a broker that tells of a partition that nobody asked for."""

    def ask(self, *_: Any, **__: Any) -> FetchResponse:
        return FetchResponse(
            responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(partition_index=7)])]
        )


def test_an_answer_that_nobody_asked_for_is_told() -> None:
    """Its thread ended without a word, and the reader waited for ever."""
    events: queue.Queue[tuple[Leader[list[FetchedRecord]], Read[list[FetchedRecord]] | Failed | Lost]] = queue.Queue()
    leader = Leader(
        cast("Connection", Odd()), {TopicPartition("t", 0): 5}, events, decode=read_partition, isolation=0, limits=USUAL
    )
    leader.run()
    _, event = events.get_nowait()
    assert isinstance(event, Lost)
    assert isinstance(event.why, ProtocolViolation)
