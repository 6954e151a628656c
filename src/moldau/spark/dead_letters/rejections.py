"""What happens to records that don't fit: the query fails, they are left out, or they are kept as dead letters."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
from confluent_kafka import KafkaException

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import reason
from moldau.spark.dead_letters.letters import (
    LETTERS_GROUP,
    SKIPPED_GROUP,
    TOPIC_SUFFIX,
    Letter,
    LetterBox,
    count_letters,
)
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.option_values import OptionError, wrong_option
from moldau.spark.record_formats import RecordFormats

LOGGER = logging.getLogger(__name__)


class OnError(StrEnum):
    FAIL = "fail"
    SKIP = "skip"
    DEADLETTER = "deadletter"


class RecordRejected(RuntimeError):
    """A record doesn't fit, and the query was told to fail for it."""


@dataclass(frozen=True, slots=True)
class RejectionRules:
    """`group` is the query's own, None where there is no query that would come back: a batch read."""

    on_error: OnError
    topic: str | None

    def topic_for(self, place: TopicPartition) -> str:
        return self.topic or f"{place.topic}{TOPIC_SUFFIX}"


def rejection_rules(options: Mapping[str, str]) -> RejectionRules:
    given = {name.lower(): value for name, value in options.items()}
    text = given.get("onerror", OnError.FAIL)
    topic = given.get("deadlettertopic")
    if text.lower() not in list(OnError):
        raise wrong_option("onError", text, f"allowed is one of {', '.join(OnError)}")
    on_error = OnError(text.lower())
    if topic is not None and on_error is not OnError.DEADLETTER:
        raise OptionError(f"option deadLetterTopic = {topic!r}: it needs onError = deadletter")
    return RejectionRules(on_error, topic)


class Rejections:
    """The records of one task that don't fit."""

    def __init__(
        self,
        rules: RejectionRules,
        client: ClientSettings,
        *,
        range_: OffsetRange,
        split: int,
        group: str,
        query: str,
        transactional_prefix: str | None = None,
    ) -> None:
        self.rules = rules
        self.range = range_
        self.count = 0
        self.first: Letter | None = None
        topic = rules.topic_for(range_.place) if rules.on_error is OnError.DEADLETTER else None
        self.box = LetterBox(
            client,
            topic=topic,
            group=group,
            query=query,
            range_=range_,
            split=split,
            transactional_prefix=transactional_prefix,
        )

    def take(self, letters: list[Letter]) -> None:
        if not letters:
            return
        if self.rules.on_error is OnError.FAIL:
            raise RecordRejected(
                f"the record at offset {letters[0].offset} of {self.range.place} does not fit: {letters[0].reason}; "
                "onError=skip leaves such records out, onError=deadletter keeps them in a topic"
            )
        self.first = self.first or letters[0]
        self.count += len(letters)
        self.box.add(letters)

    def finish(self) -> None:
        """Once the whole range was read: what is left is written, and the user is told."""
        if self.first is None:
            return
        written = self.box.close()
        place = f"{self.range.place}, offsets {self.range.start} to {self.range.end - 1}"
        done = f"{written} written to {self.box.topic}" if self.box.topic else "left out"
        LOGGER.warning(
            "%s: %d records do not fit, %s; the first at offset %d: %s",
            place, self.count, done, self.first.offset, self.first.reason,
        )  # fmt: skip


def typed_batches(
    raw: Iterable[pa.RecordBatch], formats: RecordFormats, rejections: Rejections
) -> Iterator[pa.RecordBatch]:
    """Typed rows batch by batch; the letters count once the range was read to its end."""
    for batch in raw:
        typed = formats.decode(batch)
        rejections.take(typed.rejected)
        if typed.batch.num_rows:
            yield typed.batch
    rejections.finish()


class RejectionCounts:
    """On the driver's side of a streaming query: one line whenever the number of records that don't fit has grown."""

    def __init__(self, rules: RejectionRules, client: ClientSettings) -> None:
        self.kind = LETTERS_GROUP if rules.on_error is OnError.DEADLETTER else SKIPPED_GROUP
        self.counts_any = rules.on_error is not OnError.FAIL
        self.client = client
        self.told = 0

    def report(self, group: str | None, places: Iterable[TopicPartition], *, splits: int) -> int:
        """The total over all runs of the query; a count that can't be had ends no query."""
        if not self.counts_any or group is None:
            return 0
        try:
            counts = count_letters(self.client, group, places, kind=self.kind, splits=splits)
        except KafkaException as wrong:
            LOGGER.warning("%s: records that did not fit could not be counted: %s", group, reason(wrong))
            return self.told
        total = sum(counts.values())
        if total != self.told:
            by_place = ", ".join(f"{place}: {count}" for place, count in sorted(counts.items()))
            action = "written to dead letters" if self.kind == LETTERS_GROUP else "skipped"
            LOGGER.warning("%s: %d records did not fit so far and were %s (%s)", group, total, action, by_place)
        self.told = total
        return total
