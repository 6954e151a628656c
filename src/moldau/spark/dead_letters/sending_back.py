"""Dead letters back to where they came from, once what was wrong is mended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, NoAnswer, client_config, reason
from moldau.spark.dead_letters.letters import HEADER_NAMES, HEADER_PREFIX, Headers, letter_producer, produce
from moldau.spark.offsets.committed import committed

GROUP_SUFFIX = ".send-back"
LETTERS_PER_TRANSACTION = 500
NOTHING_S_MAX = 10.0
WAIT_S = 0.2  # the library waits this long for a full transaction's worth, also where less is left


class Refused(NamedTuple):
    """A record that letters are of. A topic that was made anew has another one at the same offset."""

    place: TopicPartition
    offset: int
    timestamp_ms: int
    content: int  # a hash


@dataclass(slots=True)
class SentBack:
    """Records sent to each topic; the other records of the dead-letter topic stay where they are.

    A letter of a row that is no record's own has no place to go back to. One record may have several letters, of
    several queries or rows: it is sent once in a run.
    """

    by_topic: dict[str, int] = field(default_factory=dict)
    not_letters: int = 0
    without_record: int = 0
    repeated: int = 0
    records: set[Refused] = field(default_factory=set)

    @property
    def total(self) -> int:
        return sum(self.by_topic.values())


@dataclass(frozen=True, slots=True)
class Opened:
    """A letter's record as it was, where it was, and who refused it for which reason.

    `place` is None where what was refused is no record but a row that was made of some.
    """

    place: TopicPartition | None
    timestamp_ms: int
    headers: Headers
    offset: int = -1
    query: str = ""
    reason: str = ""


def open_letter(headers: Headers | None) -> Opened | None:
    """None for a record that is no letter. Only the last header of each name is ours: the record may have been one."""
    given = list(headers or [])
    told: dict[str, str] = {}
    for name in HEADER_NAMES:
        at = next((at for at in reversed(range(len(given))) if given[at][0] == HEADER_PREFIX + name), None)
        if at is not None:
            told[name] = (given.pop(at)[1] or b"").decode(errors="replace")
    if set(told) == {"query", "reason"}:
        return Opened(None, -1, given, query=told["query"], reason=told["reason"])
    if len(told) < len(HEADER_NAMES):
        return None
    try:
        return Opened(
            TopicPartition(told["topic"], int(told["partition"])),
            int(told["timestamp"]),
            given,
            offset=int(told["offset"]),
            query=told["query"],
            reason=told["reason"],
        )
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """One record of a dead-letter topic; `opened` is None for one that is no letter."""

    key: bytes | None
    value: bytes | None
    opened: Opened | None


def letters(client: ClientSettings, topic: str) -> Iterator[StoredLetter]:
    """Everything that is in `topic` now, sent back or not, for a look: nothing is committed."""
    group = dict(client).get("group.id", f"{topic}.look")
    own = {"group.id": group, "enable.auto.commit": "false", "isolation.level": "read_committed"}
    consumer = Consumer(client_config(client) | own | {"enable.partition.eof": "true"})
    try:
        ends = _begin(consumer, topic, from_committed=False)
        while ends:
            for message in _next(consumer, ends):
                yield StoredLetter(message.key(), message.value(), open_letter(message.headers()))
    except KafkaException as wrong:
        raise NoAnswer(f"letters of {topic} cannot be read: {reason(wrong)}") from None
    finally:
        consumer.close()


def send_back(client: ClientSettings, topic: str, *, group: str | None = None) -> SentBack:
    """Every letter that is in `topic` now and was not sent back before: same bytes, headers, timestamp and partition.

    Each once: the records and the offsets of the letters are in one transaction, and a second run at the same time
    ends the first.
    """
    group = group or dict(client).get("group.id", f"{topic}{GROUP_SUFFIX}")
    own = {"group.id": group, "enable.auto.commit": "false", "isolation.level": "read_committed"}
    consumer = Consumer(client_config(client) | own | {"enable.partition.eof": "true", "auto.offset.reset": "earliest"})
    sent = SentBack()
    try:
        producer = letter_producer(client, group)
        producer.init_transactions(ANSWER_S_MAX)
        ends = _begin(consumer, topic)
        while ends:
            messages = _next(consumer, ends)
            if messages:
                _transact(producer, consumer, messages, sent)
    except KafkaException as wrong:
        raise NoAnswer(f"letters of {topic} cannot be sent back ({sent.total} were): {reason(wrong)}") from None
    finally:
        consumer.close()
    return sent


def _begin(consumer: Consumer, topic: str, *, from_committed: bool = True) -> dict[int, int]:
    """Assign what is left to read; the partitions with something left, and the end of each at this moment."""
    known = consumer.list_topics(topic, timeout=ANSWER_S_MAX).topics[topic]
    if known.error is not None:
        raise KafkaException(known.error)
    ends: dict[int, int] = {}
    starts: list[ClientPartition] = []
    partitions = [ClientPartition(topic, partition) for partition in sorted(known.partitions)]
    for place in committed(consumer, partitions) if from_committed else partitions:
        low, high = consumer.get_watermark_offsets(place, timeout=ANSWER_S_MAX)
        start = max(place.offset, low)
        if start < high:
            ends[place.partition] = high
            starts.append(ClientPartition(topic, place.partition, start))
    consumer.assign(starts)
    return ends


def _next(consumer: Consumer, ends: dict[int, int]) -> list[Any]:
    """The next records; a partition that has come to its end leaves `ends`."""
    deadline_s = time.monotonic() + NOTHING_S_MAX
    while not (events := consumer.consume(LETTERS_PER_TRANSACTION, WAIT_S)):
        if time.monotonic() > deadline_s:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"nothing came in {NOTHING_S_MAX:.0f} s"))
    messages = []
    for event in events:
        error = event.error()
        if error is None and event.offset() < ends.get(event.partition(), 0):
            messages.append(event)
        elif error is not None and error.code() != KafkaError._PARTITION_EOF:
            if not error.retriable():
                raise KafkaException(error)
            continue
        # The end event comes also where the last offsets are control records, which no message has.
        if error is not None or event.offset() + 1 >= ends.get(event.partition(), 0):
            ends.pop(event.partition(), None)
    return messages


def _transact(producer: Producer, consumer: Consumer, messages: list[Any], sent: SentBack) -> None:
    positions: dict[int, ClientPartition] = {}
    counts: dict[str, int] = {}
    found = Counter[str]()
    records = set[Refused]()
    producer.begin_transaction()
    try:
        for message in messages:
            letter = open_letter(message.headers())
            if letter is None or letter.place is None:
                found["not_letters" if letter is None else "without_record"] += 1
            elif (refused := _refused(message, letter, letter.place)) in records or refused in sent.records:
                found["repeated"] += 1
            else:
                records.add(refused)
                counts[letter.place.topic] = counts.get(letter.place.topic, 0) + 1
                produce(producer, **_record(message, letter, letter.place))
            positions[message.partition()] = ClientPartition(message.topic(), message.partition(), message.offset() + 1)
        producer.send_offsets_to_transaction(list(positions.values()), consumer.consumer_group_metadata(), ANSWER_S_MAX)
        producer.commit_transaction(ANSWER_S_MAX)
    except KafkaException as wrong:
        if wrong.args[0].txn_requires_abort():
            producer.abort_transaction(ANSWER_S_MAX)
        raise
    sent.records |= records
    sent.not_letters += found["not_letters"]
    sent.without_record += found["without_record"]
    sent.repeated += found["repeated"]
    for topic, count in counts.items():
        sent.by_topic[topic] = sent.by_topic.get(topic, 0) + count


def _refused(message: Any, letter: Opened, place: TopicPartition) -> Refused:
    return Refused(place, letter.offset, letter.timestamp_ms, hash((message.key(), message.value())))


def _record(message: Any, letter: Opened, place: TopicPartition) -> Mapping[str, Any]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "key": message.key(),
        "value": message.value(),
        "timestamp": max(letter.timestamp_ms, 0),
        "headers": letter.headers,
    }
