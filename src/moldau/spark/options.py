"""What a user may say to the source and to the sink, under the stock connector's names: parsed and checked at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark import registry_names as registry
from moldau.spark.clients.settings import USUAL_PATIENCE, Patience, client_settings
from moldau.spark.offsets.bounds import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Bound,
    Everywhere,
    parse_offsets,
    parse_partitions,
)
from moldau.spark.option_values import OptionError, OptionValues, wrong_option
from moldau.spark.reading.admission import Admission
from moldau.spark.reading.narrowing import Narrowing, narrowing_from
from moldau.spark.registry_refusals import refuse_on_reading, refuse_unsupported

Parsed = TypeVar("Parsed")

NARROWING = "narrowing"  # what `moldau sql` found in a question; people have the options of starting and ending
SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
FORMATS = (
    "keyFormat", "valueFormat", "keySchema", "valueSchema", "keyAvroSchema", "valueAvroSchema", "onError",
    "deadLetterTopic", *registry.ALL,
)  # fmt: skip
PREFIXES = ("groupIdPrefix", "transactionalIdPrefix")
SOURCE_OPTIONS = (
    *SUBSCRIPTIONS, *STARTS, *ENDS, *FORMATS, "startingOffsetsByTimestampStrategy", "failOnDataLoss",
    "includeHeaders", "minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
    "maxTriggerDelay", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
    *PREFIXES, "groupId", "queryName", "commitOffsets", "reader", "inferenceRecords",
    "readAnew", NARROWING,
)  # fmt: skip
SINK_FORMATS = ("keyFormat", "valueFormat", "keyAvroSchema", "valueAvroSchema", *registry.ALL)
SINK_OPTIONS = (
    "topic", "delivery", "queryId", "batchId", "writer", "topicPartitions", "topicReplicationFactor", *PREFIXES,
    *SINK_FORMATS,
)  # fmt: skip
# Spark puts these among ours. One option map may serve both ends of a job, so either knows the other's names too.
KNOWN = (*SOURCE_OPTIONS, *SINK_OPTIONS, "path", "checkpointLocation")

AT_LEAST_ONCE = "at-least-once"
EXACTLY_ONCE = "exactly-once"
READ_COMMITTED = "read_committed"
GROUP_PREFIX = "moldau-spark"
POLL_TIMEOUT_MS = 120_000
TRIGGER_DELAY_MS_MAX = 15 * 60_000
INFERENCE_RECORDS = 1_000  # enough to meet rare members of an object, read in well under a second


@dataclass(frozen=True, slots=True)
class Subscription:
    """Topics by name, topics by a pattern, or partitions: one of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    places: tuple[TopicPartition, ...] = ()

    @property
    def only_topic(self) -> str | None:
        """Where no other can ever be read."""
        names = {*self.topics, *(place.topic for place in self.places)}
        return names.pop() if len(names) == 1 else None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A read, as the user described it."""

    client: ClientSettings
    subscription: Subscription
    starting: Bound
    ending: Bound
    latest_if_no_timestamp: bool
    admission: Admission
    tasks_min: int | None
    records_per_task_max: int | None
    fails_on_data_loss: bool
    includes_headers: bool
    poll_timeout_ms: int
    group_id: str | None
    group_prefix: str
    transactional_prefix: str | None
    query_name: str | None
    commits_offsets: bool
    reader: str
    inference_records: int
    formats: Mapping[str, str]
    patience: Patience = USUAL_PATIENCE
    narrowing: Narrowing | None = None
    reads_anew: bool = False  # a frame that is run again sees what is there then: Spark itself plans a frame once

    @property
    def reading_group(self) -> str:
        """For librdkafka, which asks for the coordinator of a group also where it only reads what it is assigned."""
        return self.group_id or f"{self.group_prefix}-reader"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """A write, as the user described it."""

    client: ClientSettings
    topic: str | None
    delivery: str
    formats: Mapping[str, str]
    writer: str = "auto"
    group_prefix: str = GROUP_PREFIX
    transactional_prefix: str = GROUP_PREFIX
    query_id: str | None = None  # these two make a batch write inside foreachBatch as exact as a streaming one
    batch: int | None = None


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    values = OptionValues(options)
    refuse_unsupported(values.by_name)
    refuse_on_reading(values.by_name)
    values.refuse_misspelled(KNOWN)
    client = client_settings(values, side="consumer")
    group_id = dict(client).get("group.id")
    strategy = values.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), default="error")
    return SourceOptions(
        client=tuple(pair for pair in client if pair[0] != "group.id"),
        subscription=_subscription(values),
        starting=_starting(values, streaming=streaming),
        ending=_ending(values, streaming=streaming),
        latest_if_no_timestamp=strategy == "latest",
        admission=_admission(values),
        tasks_min=values.positive("minPartitions"),
        records_per_task_max=values.positive("maxRecordsPerPartition"),
        fails_on_data_loss=values.boolean("failOnDataLoss", default=True),
        includes_headers=values.boolean("includeHeaders", default=False),
        poll_timeout_ms=values.positive("kafkaConsumer.pollTimeoutMs") or POLL_TIMEOUT_MS,
        group_id=values.text("groupId") or group_id or None,
        group_prefix=values.text("groupIdPrefix") or GROUP_PREFIX,
        transactional_prefix=values.text("transactionalIdPrefix") or None,
        query_name=values.text("queryName") or None,
        commits_offsets=values.boolean("commitOffsets", default=True),
        reader=values.choice("reader", ("auto", "librdkafka"), default="auto"),
        inference_records=values.positive("inferenceRecords") or INFERENCE_RECORDS,
        formats=_formats(values, FORMATS, _subscription(values).only_topic),
        patience=_patience(values),
        narrowing=_parsed_narrowing(values),
        reads_anew=values.boolean("readAnew", default=False),
    )


def sink_options(options: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    values = OptionValues(options)
    refuse_unsupported(values.by_name)
    values.refuse_misspelled(KNOWN)
    batch = _batch_number(values)
    is_repeatable = streaming or batch is not None
    return SinkOptions(
        client=client_settings(values, side="producer"),
        topic=values.text("topic") or None,
        delivery=values.choice(
            "delivery", (AT_LEAST_ONCE, EXACTLY_ONCE), default=EXACTLY_ONCE if is_repeatable else AT_LEAST_ONCE
        ),
        formats=_formats(values, SINK_FORMATS, values.text("topic") or None),
        writer=values.choice("writer", ("auto", "librdkafka"), default="auto"),
        group_prefix=values.text("groupIdPrefix") or GROUP_PREFIX,
        transactional_prefix=values.text("transactionalIdPrefix") or GROUP_PREFIX,
        query_id=values.text("queryId") or None,
        batch=batch,
    )


def _batch_number(values: OptionValues) -> int | None:
    text = values.text("batchId")
    if text is None:
        return None
    if not text.isdigit():
        raise wrong_option("batchId", text, "allowed is a number, as foreachBatch gives it")
    if not values.text("queryId"):
        raise OptionError("option batchId needs queryId: a batch number means something within one query only")
    return int(text)


def _formats(values: OptionValues, names: Sequence[str], topic: str | None) -> dict[str, str]:
    """With `topic`, the only one, for subjects that are named after it."""
    found = {name: str(values.text(name)) for name in values.given(names)}
    login = {name: value.strip() for name, value in values.by_name.items() if registry.is_about_registries(name)}
    if login and topic is not None:
        found |= {f"{side}{registry.TOPIC}": topic for side in ("key", "value")}
    return {**found, **login}


def _patience(values: OptionValues) -> Patience:
    pause_ms = values.whole("fetchOffset.retryIntervalMs")
    return Patience(values.whole("fetchOffset.numRetries"), None if pause_ms is None else pause_ms / 1000)


def _parsed_narrowing(values: OptionValues) -> Narrowing | None:
    text = values.text(NARROWING)
    return None if text is None else narrowing_from(text)


def _subscription(values: OptionValues) -> Subscription:
    given = values.given(SUBSCRIPTIONS)
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "nothing says what to read"
        raise OptionError(f"{problem}: give one of the options {', '.join(SUBSCRIPTIONS)}")
    name = given[0]
    text = str(values.text(name))
    if name == "assign":
        return Subscription(places=_parsed(parse_partitions, name, text, 'as in {"orders":[0,1]}'))
    if name == "subscribe":
        topics = tuple(sorted({topic.strip() for topic in text.split(",") if topic.strip()}))
        if not topics:
            raise wrong_option(name, text, "allowed are topics with commas between")
        return Subscription(topics=topics)
    try:
        re.compile(text)
    except re.error as wrong:
        raise wrong_option(name, text, f"it is no regular expression: {wrong}") from None
    if not text:
        raise wrong_option(name, text, "allowed is a regular expression that whole topic names match")
    return Subscription(pattern=text)


def _admission(values: OptionValues) -> Admission:
    records_max, records_min = values.positive("maxOffsetsPerTrigger"), values.positive("minOffsetsPerTrigger")
    if records_max is not None and records_min is not None and records_min > records_max:
        raise wrong_option("minOffsetsPerTrigger", str(records_min), f"maxOffsetsPerTrigger is only {records_max}")
    delay_ms = values.duration_ms("maxTriggerDelay", default=TRIGGER_DELAY_MS_MAX)
    return Admission(records_max=records_max, records_min=records_min, delay_ms_max=delay_ms)


def _starting(values: OptionValues, *, streaming: bool) -> Bound:
    bound = _bound(values, STARTS) or Everywhere(LATEST if streaming else EARLIEST)
    if not streaming and LATEST in _named(bound):
        raise wrong_option(
            "startingOffsets", str(values.text("startingOffsets")), "a batch read cannot start at the latest offset"
        )
    return bound


def _ending(values: OptionValues, *, streaming: bool) -> Bound:
    if streaming and values.given(ENDS):
        name = values.given(ENDS)[0]
        raise wrong_option(name, str(values.text(name)), "a stream has no end; it is an option of batch reads")
    bound = _bound(values, ENDS) or Everywhere(LATEST)
    if EARLIEST in _named(bound):
        raise wrong_option(
            "endingOffsets", str(values.text("endingOffsets")), "a read cannot end at the earliest offset"
        )
    return bound


def _named(bound: Bound) -> set[int]:
    if isinstance(bound, Everywhere):
        return {bound.offset}
    return set(bound.offsets.values()) if isinstance(bound, AtOffsets) else set()


def _bound(values: OptionValues, names: tuple[str, str, str]) -> Bound | None:
    """The first of the three that is given counts: a time for all, a time for each, offsets."""
    for_all, for_each, offsets = names
    text = values.text(for_all)
    if text is not None:
        if not text.isdigit():
            raise wrong_option(for_all, text, "allowed are milliseconds since 1970")
        return AtTimestamp(int(text))
    text = values.text(for_each)
    if text is not None:
        times = _parsed(parse_offsets, for_each, text, 'milliseconds since 1970, as in {"orders":{"0":1700000000000}}')
        if any(timestamp_ms < 0 for timestamp_ms in times.values()):
            raise wrong_option(for_each, text, "a time before 1970 is not allowed")
        return AtTimestamps(times)
    text = values.text(offsets)
    if text is None:
        return None
    if text.lower() in ("earliest", "latest"):
        return Everywhere(EARLIEST if text.lower() == "earliest" else LATEST)
    parsed = _parsed(parse_offsets, offsets, text, 'earliest, latest, or offsets as in {"orders":{"0":23,"1":-2}}')
    if any(offset < EARLIEST for offset in parsed.values()):
        raise wrong_option(offsets, text, "allowed are offsets from 0, -1 for the latest and -2 for the earliest")
    return AtOffsets(parsed)


def _parsed(parse: Callable[[str], Parsed], name: str, text: str, allowed: str) -> Parsed:
    try:
        return parse(text)
    except ValueError as wrong:
        raise wrong_option(name, text, f"{wrong}; allowed is {allowed}") from None
