"""Typed columns by a schema registry beside the same rows in plain formats: `python -m bench.spark --part registry`.

A ratio is the registry's median over the plain format's: 1.00 is no cost at all. JSON by a schema of the subject's is
judged row by row when it is written: that is `json, validated`. Protobuf has no plain format and stands beside Avro.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tests.spark.registries import running_registry

RECORDS = 1_000_000
COLUMNS = "id BIGINT, name STRING, amount DOUBLE"
AVRO = """{"type": "record", "name": "Row", "fields": [{"name": "id", "type": ["null", "long"]},
    {"name": "name", "type": ["null", "string"]}, {"name": "amount", "type": ["null", "double"]}]}"""
JSON_SCHEMA = """{"type": "object", "properties": {"id": {"type": "integer", "minimum": 0},
    "name": {"type": "string", "maxLength": 100}, "amount": {"type": "number"}}, "required": ["id"]}"""
PLAIN = {
    "avro": {"valueFormat": "avro", "valueAvroSchema": AVRO},
    "json": {"valueFormat": "json", "valueSchema": COLUMNS},
}
WAYS = {"avro": "avro", "json": "json", "json, validated": "json", "protobuf": "avro"}  # beside which plain format


class Runner(Protocol):
    def call(self, job: str, **fields: Any) -> Any: ...


class Topics(Protocol):
    def target(self) -> AbstractContextManager[str]: ...

    def source(self, topic: str, **options: str) -> dict[str, str]: ...

    def sink(self, topic: str, **options: str) -> dict[str, str]: ...


def compare(runner: Runner, topics: Topics, bootstrap: str, *, scale: float, rounds: int) -> Iterator[str]:
    """Lines of a table."""
    records = max(1000, int(RECORDS * scale))
    with running_registry(bootstrap) as url, SchemaRegistryClient({"url": url}) as registry:
        yield f"| {records:,} rows | write, s | plain, s | ratio | read, s | plain, s | ratio |"
        yield "|---|---|---|---|---|---|---|"
        for way, beside in WAYS.items():
            framed = {"schema.registry.url": url, "valueFormat": way.partition(",")[0]}
            found: dict[str, list[float]] = {name: [] for name in ("write", "plain write", "read", "plain read")}
            for number in range(rounds + 1):  # the first one warms up
                for name, options in (("", framed), ("plain ", PLAIN[beside])):
                    spent = measured(runner, topics, options, records, registry if "validated" in way else None)
                    if number:
                        found[f"{name}write"].append(spent[0])
                        found[f"{name}read"].append(spent[1])
            yield line(way, {name: statistics.median(each) for name, each in found.items()})


def measured(
    runner: Runner, topics: Topics, options: Mapping[str, str], records: int, registry: SchemaRegistryClient | None
) -> tuple[float, float]:
    """Seconds of writing and of reading. With `registry` rows are written by a schema that the subject has already."""
    with topics.target() as topic:
        writing = dict(options)
        if registry is not None and "schema.registry.url" in options:
            registry.register_schema(f"{topic}-value", Schema(JSON_SCHEMA, "JSON"))
            writing["use.latest.version"] = "true"
        written_s = runner.call("write_typed", sink=topics.sink(topic, **writing), records=records)
        return written_s, runner.call("read", source=topics.source(topic, **options))


def line(way: str, medians: Mapping[str, float]) -> str:
    cells = [way]
    for name in ("write", "read"):
        ours, plain = medians[name], medians[f"plain {name}"]
        cells += [f"{ours:.2f}", f"{plain:.2f}", f"{ours / plain:.2f}"]
    return f"| {' | '.join(cells)} |"
