"""`moldau verifiable-consumer`: a member of a group that says what it was assigned, read and committed."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from moldau.cli.failures import OK, CommandFailed
from moldau.cli.kafka.commands.verifiable_consumer import CONSUMER
from moldau.cli.kafka.java_clients import assignors, java_client_config
from moldau.cli.kafka.verifiable.events import StopRequest, tell
from moldau.cli.librdkafka import cluster_metadata, open_client, reason

CLIENT_ID = "consumer-1"
AT_ONCE = 500  # as many as one poll of Java's consumer gives
POLL_S = 0.1
REFRESH_MS = 1_000  # how soon a topic is found that is created later; librdkafka's own is five minutes
# With these nothing more will come; everything else is tried again, as in Java.
ENDINGS = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.INVALID_REQUEST,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNRELEASED_INSTANCE_ID,
        KafkaError.UNSUPPORTED_ASSIGNOR,
        KafkaError.UNSUPPORTED_VERSION,
    }
)


def run(options: Namespace) -> int:
    consumer = open_client(Consumer, _config(options))
    cluster_metadata(consumer, options)
    stop = StopRequest()
    failure = _read(consumer, options, stop)
    if stop.is_set:
        tell("shutdown_requested")
    consumer.close()
    tell("shutdown_complete")
    if failure is not None:
        raise CommandFailed(failure)
    return OK


def _read(consumer: Consumer, options: Namespace, stop: StopRequest) -> str | None:
    """Until it is stopped or has enough; gives what went wrong."""
    tell("startup_complete")
    left = options.max_messages if options.max_messages >= 0 else None
    try:
        consumer.subscribe([options.topic], on_assign=_on_assign, on_revoke=_on_revoke, on_lost=_on_revoke)
        _ask_for_topic(consumer, options)
        while not stop.is_set and left != 0:
            batch = _polled(consumer)
            records = [each for each in batch if each.error() is None]
            broken = [each.error() for each in batch if each.error() is not None]
            if ended := next((each for each in broken if each.code() in ENDINGS), None):
                raise KafkaException(ended)
            if not records:
                continue
            read = _told(records, left, is_verbose=options.verbose)
            left = None if left is None else left - sum(len(each) for each in read)
            if not options.enable_autocommit:
                _commit(consumer, read)
    except KafkaException as wrong:
        return reason(wrong)
    return None


def _ask_for_topic(consumer: Consumer, options: Namespace) -> None:
    """So that a broker that does so creates it, and a name that can't be one is told: a subscription does neither."""
    error = consumer.list_topics(options.topic, timeout=options.timeout).topics[options.topic].error
    if error is not None and error.code() in ENDINGS:
        raise KafkaException(error)


def _polled(consumer: Consumer) -> list[Message]:
    """What is here as soon as something is, as Java's consumer has it; `consume` would wait until its time is up."""
    return consumer.consume(AT_ONCE, 0) or consumer.consume(1, POLL_S)  # type: ignore[no-any-return]


def _told(records: list[Message], left: int | None, *, is_verbose: bool) -> list[list[Message]]:
    """What is read of each partition, no more than are left."""
    by_partition: dict[tuple[str, int], list[Message]] = {}
    for record in records:
        by_partition.setdefault((record.topic(), record.partition()), []).append(record)
    read: list[list[Message]] = []
    for found in by_partition.values():
        kept = found if left is None else found[:left]
        if not kept:
            break
        left = None if left is None else left - len(kept)
        read.append(kept)
        if is_verbose:
            _tell_records(kept)
    summaries = [
        {**_place(kept[0]), "count": len(kept), "minOffset": kept[0].offset(), "maxOffset": kept[-1].offset()}
        for kept in read
    ]
    tell("records_consumed", count=len(records), partitions=summaries)
    return read


def _tell_records(records: list[Message]) -> None:
    for each in records:
        tell("record_data", key=_text(each.key()), value=_text(each.value()), **_place(each), offset=each.offset())


def _commit(consumer: Consumer, read: list[list[Message]]) -> None:
    offsets = [TopicPartition(kept[-1].topic(), kept[-1].partition(), kept[-1].offset() + 1) for kept in read]
    shown = [{"topic": each.topic, "partition": each.partition, "offset": each.offset} for each in offsets]
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as wrong:
        tell("offsets_committed", offsets=shown, error=reason(wrong), success=False)
    else:
        tell("offsets_committed", offsets=shown, success=True)


def _on_assign(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
    tell("partitions_assigned", partitions=[{"topic": each.topic, "partition": each.partition} for each in partitions])


def _on_revoke(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
    tell("partitions_revoked", partitions=[{"topic": each.topic, "partition": each.partition} for each in partitions])


def _place(message: Message) -> dict[str, Any]:
    return {"topic": message.topic(), "partition": message.partition()}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _config(options: Namespace) -> dict[str, Any]:
    known = {"allow.auto.create.topics": True, "topic.metadata.refresh.interval.ms": REFRESH_MS}
    config = java_client_config(options, client_id=CLIENT_ID, **known)
    config |= {
        "group.id": options.group_id,
        "enable.auto.commit": options.enable_autocommit,
        "auto.offset.reset": "error" if options.reset_policy == "none" else options.reset_policy,
    }
    if options.group_instance_id is not None:
        config["group.instance.id"] = options.group_instance_id
    if options.group_protocol.lower() == CONSUMER:
        config["group.protocol"] = CONSUMER
        if options.group_remote_assignor is not None:
            config["group.remote.assignor"] = options.group_remote_assignor
        return config
    config["partition.assignment.strategy"] = assignors(options.assignment_strategy)
    if options.session_timeout is not None:
        config["session.timeout.ms"] = options.session_timeout
    return config
