"""A table's state asked for as the batches of a query ask for it, without a query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.running.joining.states import TableState
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id string, name string"


@dataclass
class Customers:
    topics: Topics
    spark: SparkSession
    folder: Path
    topic: str = field(init=False)

    def __post_init__(self) -> None:
        self.topic = self.topics.create("customers")

    def put(self, **names: Any) -> None:
        for key, value in names.items():
            told = value if isinstance(value, dict) else {"name": value}
            self.topics.produce(self.topic, [json.dumps({"id": key, **told})], key=key)

    def make_anew(self) -> None:
        self.topics.delete(self.topic)
        for _ in range(300):
            with suppress(KafkaException):  # a topic that is being deleted is in the way for a moment
                self.topics.create_named(self.topic)
                return
        raise AssertionError(f"{self.topic} could not be made anew")

    def state(self, columns: str = COLUMNS, **options: str) -> TableState:
        """Of a run of the query."""
        said = "".join(f", {name} = '{value}'" for name, value in options.items())
        text = (
            f"set bootstrap.servers = '{self.topics.bootstrap}'; create table customers from topic '{self.topic}' "
            f"key (id) with (valueFormat = json, valueSchema = '{columns}'{said});"
        )
        plan = parse(text, "test.sql", name="test")
        return TableState(plan.sources[0], plan, str(self.folder))

    def rows(self, state: TableState, batch: int) -> list[tuple[Any, ...]]:
        return sorted(self._rows(state, batch))

    def _rows(self, state: TableState, batch: int) -> Iterator[tuple[Any, ...]]:
        for row in state.pinned(self.spark, batch).rows(self.spark).collect():
            yield tuple(row[name] for name in row.asDict() if not name.startswith("_"))

    def files(self) -> list[str]:
        return sorted(
            path.name.rpartition("-")[0] or path.name for path in (self.folder / "tables/customers").iterdir()
        )
