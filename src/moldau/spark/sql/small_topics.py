"""A topic that is small is read by the one who asks, while Spark starts, and handed over as a table.

To read it by itself Spark starts four Python processes, one after the other, each of which takes longer to load what it
needs than a thousand records take to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import KafkaException

from moldau.schemas.registry_client import RegistryError
from moldau.spark.pipelines.plan import Plan, Source
from moldau.spark.pipelines.running.frames.sources import topic_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RECORDS_MAX = 50_000  # half a second to read here; beyond it all cores are worth their start
BYTES_MAX = 32 << 20


class Records:
    """Rows as the source would have given them."""

    def __init__(self, table: pa.Table, schema: StructType) -> None:
        self.table = table
        self.schema = schema


def small_records(source: Source, plan: Plan) -> Records | None:
    """None if there is too much, and where anything is wrong: the read on Spark says what."""
    from moldau.spark.options import source_options
    from moldau.spark.reading.batch_reader import MoldauReader
    from moldau.spark.reading.task_ranges import TaskRange
    from moldau.spark.reading.typed_columns import schema_of

    options = topic_options(source.endpoint, plan) | {"subscribe": source.endpoint.location}
    try:
        schema = schema_of(options)
        reader = MoldauReader(source_options(options, streaming=False), schema)
        tasks = [task for task in reader.partitions() if isinstance(task, TaskRange)]
        if sum(task.value.size for task in tasks) > RECORDS_MAX:
            return None
        batches: list[pa.RecordBatch] = []
        for task in tasks:
            for batch in reader.read(task):
                batches.append(batch)
                if sum(one.nbytes for one in batches) > BYTES_MAX:
                    return None
    except (ValueError, RuntimeError, KafkaException, RegistryError):
        return None
    return Records(pa.Table.from_batches(batches), schema) if batches else None
