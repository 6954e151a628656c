"""Rows that broke an expectation, as dead letters: the records that they came from, where one can be told.

A row that knows its record by `_topic`, `_partition` and `_offset` is replaced by that record, read once more from its
topic: bytes, key, headers and time as they were, so that it can be sent back. Any other row, of an aggregate or of a
query that left those columns out, is kept as JSON and has no way back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from moldau.spark.dead_letters.letters import HEADER_PREFIX
from moldau.spark.formats.type_names import quoted_name
from moldau.spark.options import PREFIXES
from moldau.spark.pipelines.plan import Connector, Endpoint, Plan, Source, letters_topic
from moldau.spark.pipelines.running.frames.sources import RECORD_COLUMNS, topic_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

BROKEN = "_broken"  # the name of the expectation that a row broke, null in rows that broke none
PLACE = ("topic", "partition", "offset")
RECORD = (*PLACE, "timestamp", "key", "value", "headers")
GROUP_NAMES = ("groupid", *(name.lower() for name in PREFIXES))
GONE = " (the record itself is no longer in its topic)"


class Stretch(NamedTuple):
    """Of one partition, from the first record to the last that is wanted."""

    topic: str
    partition: int
    first: int
    last: int


def refused_rows(frame: DataFrame, relation: str) -> DataFrame:
    """In the same columns, whatever the relation: its name, the expectation's, the record's place, the row as JSON."""
    from pyspark.sql import functions as f

    known = set(RECORD_COLUMNS.values()) | {BROKEN}
    # A join of two topics has two of each such column, unless its query chooses: then no record is the row's own.
    has_place = all(frame.columns.count(RECORD_COLUMNS[name]) == 1 for name in PLACE)
    kinds = {"topic": "string", "partition": "int", "offset": "bigint"}
    place = [
        (f.col(RECORD_COLUMNS[name]) if has_place else f.lit(None)).cast(kinds[name]).alias(name) for name in PLACE
    ]
    plain = [name for name in frame.columns if name not in known and frame.columns.count(name) == 1]
    row = f.to_json(f.struct(*(f.col(quoted_name(name)) for name in plain))) if plain else f.lit("{}")
    return frame.select(f.lit(relation).alias("relation"), f.col(BROKEN).alias("rule"), *place, row.alias("row"))


def letters_of(refused: DataFrame, plan: Plan, *, query: str) -> DataFrame | None:
    """Records for the topics of dead letters; None where nothing was refused."""
    from pyspark.sql import functions as f

    from moldau.spark.columns import spark_headers_type

    stretches = list(_stretches(refused))
    if not stretches and refused.isEmpty():
        return None
    found = _records(refused.sparkSession, plan, stretches)
    if found is None:
        found = refused.sparkSession.createDataFrame([], _record_schema())
    told = refused.join(found, [refused[name] == found[f"r_{name}"] for name in PLACE], "left")
    is_there = f.col("r_offset").isNotNull()
    reason = f.concat(f.col("reason"), f.when(~is_there & f.col("offset").isNotNull(), GONE).otherwise(""))
    about = {"query": f.lit(query), "reason": reason}
    place = {name: f.col(f"r_{name}").cast("string") for name in PLACE}
    place["timestamp"] = f.unix_millis("r_timestamp").cast("string")
    none = f.array().cast(spark_headers_type())
    headers = f.when(is_there, f.concat(f.coalesce("r_headers", none), _headers(place))).otherwise(none)
    rules = told.join(f.broadcast(_rules(refused.sparkSession, plan)), ["relation", "rule"])
    return rules.select(
        f.col("letters").alias("topic"),
        f.col("r_key").alias("key"),
        f.when(is_there, f.col("r_value")).otherwise(f.encode("row", "utf-8")).alias("value"),
        f.concat(headers, _headers(about)).alias("headers"),
    )


def empty_letters(session: SparkSession) -> DataFrame:
    """In the columns that letters have."""
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    from moldau.spark.columns import spark_headers_type

    kinds = {"topic": StringType(), "key": BinaryType(), "value": BinaryType(), "headers": spark_headers_type()}
    return session.createDataFrame([], StructType([StructField(name, kind) for name, kind in kinds.items()]))


def _headers(told: Mapping[str, Column]) -> Column:
    from pyspark.sql import functions as f

    from moldau.spark.columns import spark_headers_type

    pairs = [
        f.struct(f.lit(HEADER_PREFIX + name).alias("key"), text.cast("binary").alias("value"))
        for name, text in told.items()
    ]
    return f.array(*pairs).cast(spark_headers_type())


def _rules(session: SparkSession, plan: Plan) -> DataFrame:
    rows = [
        (one.name, rule.name, f"{rule.name}: {rule.condition}", letters_topic(one.name, plan))
        for one in plan.relations()
        for rule in plan.expectations_of(one.name)
    ]
    return session.createDataFrame(rows, "relation string, rule string, reason string, letters string")


def _stretches(refused: DataFrame) -> Iterator[Stretch]:
    from pyspark.sql import functions as f

    asked = refused.where("offset is not null").groupBy("topic", "partition")
    for row in asked.agg(f.min("offset"), f.max("offset")).collect():
        yield Stretch(*row)


def _records(session: SparkSession, plan: Plan, stretches: Iterable[Stretch]) -> DataFrame | None:
    """Everything from the first to the last record that is wanted of each partition, as it is in its topic."""
    frames, left = [], list(stretches)
    for source in plan.sources:
        own = [one for one in left if _is_of(source, one.topic)]
        left = [one for one in left if one not in own]
        if own:
            reader = session.read.format("moldau").options(**_reading(source.endpoint, plan, own))
            frames.append(reader.load().selectExpr(*(f"{name} as r_{name}" for name in RECORD)))
    return reduce(lambda one, other: one.unionAll(other), frames) if frames else None


def _is_of(source: Source, topic: str) -> bool:
    if source.endpoint.connector is Connector.PATTERN:
        return re.fullmatch(source.endpoint.location, topic) is not None
    return source.endpoint.connector is Connector.TOPIC and topic in source.endpoint.location.split(",")


def _reading(endpoint: Endpoint, plan: Plan, stretches: Iterable[Stretch]) -> dict[str, str]:
    """Raw, and whatever is left of it: a record that is gone has its row in its place."""
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for one in stretches:
        assigned.setdefault(one.topic, []).append(one.partition)
        starts.setdefault(one.topic, {})[str(one.partition)] = one.first
        ends.setdefault(one.topic, {})[str(one.partition)] = one.last + 1
    said = topic_options(endpoint, plan).items()
    client = {key: value for key, value in said if key.lower().startswith("kafka.") or key.lower() in GROUP_NAMES}
    bounds = {"assign": assigned, "startingOffsets": starts, "endingOffsets": ends}
    asked = {name: json.dumps(value) for name, value in bounds.items()}
    return {**client, **asked, "includeHeaders": "true", "failOnDataLoss": "false"}


def _record_schema() -> StructType:
    from pyspark.sql.types import StructField, StructType

    from moldau.spark.columns import spark_schema

    raw = spark_schema(includes_headers=True)
    return StructType([StructField(f"r_{name}", raw[name].dataType) for name in RECORD])
