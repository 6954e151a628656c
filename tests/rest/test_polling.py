"""What an instance makes of librdkafka's errors, without a cluster: they come between records, and most pass by."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError

from moldau.rest.consuming.consumer import InstanceConsumer
from moldau.rest.settings import RestSettings
from moldau.web.errors import ApiError


@dataclass(frozen=True, slots=True)
class Message:
    content: bytes = b""
    code: int | None = None

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return self.content

    def topic(self) -> str:
        return "orders"


class FakeConsumer:
    def __init__(self, *messages: Message) -> None:
        self.messages = deque(messages)
        self.stored: list[bytes] = []

    def subscribe(self, topics: list[str], **_: object) -> None:
        pass

    def poll(self, _: float) -> Message | None:
        return self.messages.popleft() if self.messages else None

    def consume(self, _count: int, _timeout_s: float) -> list[Message]:
        found = [*self.messages]
        self.messages.clear()
        return found

    def store_offsets(self, message: Message) -> None:
        self.stored.append(message.content)


def reading(*messages: Message) -> tuple[InstanceConsumer, FakeConsumer]:
    properties = {"bootstrap.servers": "localhost:1", "group.id": "g"}
    consumer, fake = InstanceConsumer(properties, RestSettings(client={})), FakeConsumer(*messages)
    consumer.close()
    consumer._consumer, consumer._is_closed = fake, False
    consumer.subscribe(["orders"])
    return consumer, fake


def taken(consumer: InstanceConsumer) -> list[bytes]:
    def value(record: Any) -> bytes:
        content: bytes = record.value()
        return content

    return consumer.take(value, bytes_max=1_000, wait_s=0, is_first=True)[0]


def test_records_that_came_with_an_error_are_not_lost() -> None:
    """Librdkafka is behind them already: the next commit would pass over records that nobody got."""
    denied = Message(code=KafkaError.TOPIC_AUTHORIZATION_FAILED)
    consumer, fake = reading(Message(b"1"), denied, Message(b"2"))
    with pytest.raises(ApiError) as refused:
        taken(consumer)
    assert refused.value.code == 40301
    assert fake.stored == []
    assert taken(consumer) == [b"1", b"2"]
    assert fake.stored == [b"1", b"2"]


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR, KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE,
    ],
)  # fmt: skip
def test_what_the_consumer_tries_again_by_itself_is_no_answer(code: int) -> None:
    consumer, _ = reading(Message(code=code), Message(b"1"))
    assert taken(consumer) == [b"1"]
