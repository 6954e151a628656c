"""What is run: the queries over one topic, where they write, how far they are and whether each record arrived once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark.exactly_once.checkpoints import Checkpoint, LocalCheckpoint
from tests.spark.tables.sinks import KINDS, Sink, sink_of
from tests.spark.topics import Topics

TABLE_COLUMNS = ("id", "state")
TOPIC_COLUMNS = ("cast(id as string) as key", "cast(id as string) as value")


@dataclass(frozen=True, slots=True)
class TopicSink:
    """A topic, as the tables' sinks are seen."""

    topics: Topics
    topic: str
    kind: str = "topic"
    format: str = "moldau"

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.topics.bootstrap, "topic": self.topic}

    def ids(self) -> list[int]:
        return sorted(int(value or b"-1") for value in self.topics.values(self.topic))

    def staged(self) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class Arrived:
    """A comparison of what was sent with what arrived."""

    missing: int
    duplicates: int
    unknown: int

    @property
    def is_exact(self) -> bool:
        return self == Arrived(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Query:
    """One read, process and write, with a checkpoint of its own."""

    sink: Sink | TopicSink
    checkpoint: Checkpoint
    fields: dict[str, Any]

    @property
    def kind(self) -> str:
        return self.sink.kind

    def planned(self) -> int:
        """How many batches were begun."""
        return len(self.checkpoint.batches("offsets"))

    def done(self) -> int:
        return len(self.checkpoint.batches("commits"))

    def is_in_a_batch(self) -> bool:
        return self.planned() > self.done()

    def arrived(self, records: int) -> Arrived:
        counted, wanted = Counter(self.sink.ids()), range(records)
        return Arrived(
            missing=sum(each not in counted for each in wanted),
            duplicates=sum(counted.values()) - len(counted),
            unknown=sum(each not in wanted for each in counted),
        )


def fill(topics: Topics, *, records: int, partitions: int) -> str:
    """A topic with the numbers from 0 on, in turn over its partitions."""
    topic = topics.create("numbers", partitions=partitions)
    for partition in range(partitions):
        topics.produce(topic, (b"%d" % each for each in range(partition, records, partitions)), partition=partition)
    return topic


def queries(
    topics: Topics,
    source: str,
    folder: Path,
    *,
    url: str,
    batch_records: int,
    pause_s: float,
    straggle_s: float,
    kinds: Iterable[str] = ("topic", *KINDS),
    delivery: str = "exactly-once",
    checkpoint_of: Callable[[str], Checkpoint] | None = None,
) -> list[Query]:
    """One for each kind of sink, all of them over the same topic."""
    made = []
    for kind in kinds:
        name = f"{delivery.replace('-', '_')}_{kind}"
        sink: Sink | TopicSink = (
            TopicSink(topics, topics.create("copies", partitions=2))
            if kind == "topic"
            else sink_of(kind, folder, name=name, url=url if kind == "postgresql" else None)
        )
        checkpoint = checkpoint_of(name) if checkpoint_of else LocalCheckpoint(folder / f"checkpoint-{name}")
        fields = {
            "source": {
                "kafka.bootstrap.servers": topics.bootstrap,
                "subscribe": source,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(batch_records),
            },
            "columns": TOPIC_COLUMNS if kind == "topic" else TABLE_COLUMNS,
            "format": sink.format,
            "options": {**sink.options, "delivery": delivery},
            "checkpoint": checkpoint.url,
            "pause_s": pause_s,
            "straggle_s": straggle_s,
        }
        made.append(Query(sink, checkpoint, fields))
    return made
