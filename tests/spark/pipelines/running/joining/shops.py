"""Orders joined with their customers, run as the command runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.spark.pipelines.pipelines import Outcome, Pipelines
from tests.spark.tables.streams import forget_newest_commit
from tests.spark.topics import Topics

TABLE = """
    create stream orders from topic '{orders}' with (valueFormat = json, valueSchema = 'id int, customer string');
    create table customers from topic '{customers}' key (id)
        with (valueFormat = json, valueSchema = 'id string, name string');
"""
JOINED = """
    create sink joined into topic '{joined}' key (id) as
        select o.id, c.name from orders o left join customers c on o.customer = c.id;
"""


class Shop:
    def __init__(
        self, topics: Topics, pipelines: Pipelines, text: str = TABLE + JOINED, *, partitions: int = 1
    ) -> None:
        self._topics, self._pipelines = topics, pipelines
        self.names = {name: topics.create(name, partitions=partitions) for name in ("orders", "customers", "more")}
        self.names["joined"] = topics.name("joined")
        self.path = pipelines.written(text.format(**self.names))

    @property
    def checkpoint(self) -> Path:
        return self._pipelines.folder / ".moldau/pipelines/pipeline/checkpoints/joined"

    def files(self) -> list[str]:
        """What is kept of the table, without the tokens of those who wrote it."""
        there = (path.name for path in (self.checkpoint / "tables/customers").iterdir())
        return sorted(name.rpartition("-")[0] or name for name in there)

    def put(self, topic: str, **rows: Any) -> None:
        """Values by their keys; None is a tombstone."""
        for key, value in rows.items():
            self._topics.produce(self.names[topic], [None if value is None else json.dumps(value)], key=key)

    def compact(self, topic: str, before: int) -> None:
        """The records before an offset are gone, as superseded ones are after compaction."""
        self._topics.delete_records(self.names[topic], 0, before)

    def order(self, *ids: int, customer: str = "ann") -> None:
        for each in ids:
            self.put("orders", **{str(each): {"id": each, "customer": customer}})

    def customer(self, name: str | None, *, key: str = "ann") -> None:
        self.put("customers", **{key: None if name is None else {"id": key, "name": name}})

    def run(self) -> Outcome:
        outcome = self._pipelines.run(self.path)
        assert outcome.ended_well, outcome.said
        return outcome

    def forget_commit(self) -> None:
        forget_newest_commit(self.checkpoint)

    def joined(self) -> list[Any]:
        rows = [json.loads(value or b"null") for value in self._topics.values(self.names["joined"])]
        return sorted(tuple(row.get(name) for name in ("id", "name")) for row in rows)
