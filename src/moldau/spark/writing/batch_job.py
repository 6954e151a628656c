"""A batch of foreachBatch written into topics by one job, where the driver is this process.

Through a data source Spark asks Python processes beside the driver to make the writer, to plan the write and to commit
it: for a small batch that takes longer than all the rest. Here the driver does these itself, with the same writer. A
task gets the rows of its partition both ways, and of several attempts one is told to the commit.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.options import EXACTLY_ONCE, SinkOptions
from moldau.spark.streaming_batch import RUN_PROPERTY
from moldau.spark.writing.settling import check_tasks
from moldau.spark.writing.sink import MoldauWriter, checked_options, runs_seen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGE = "message"


def write_batch(frame: DataFrame, options: Mapping[str, str]) -> None:
    """`options` have the query's id and the batch's number: a batch that fails is left as it is, and runs again."""
    parsed = checked_options(options, frame.schema, streaming=False)
    assert parsed.batch is not None, "what is written without a number has to be cleared away after a failure"
    writer = MoldauWriter(parsed)
    job = frame.mapInArrow(_task_of(writer), f"{MESSAGE} binary")
    _check_tasks(job, parsed)
    writer.commit([pickle.loads(row[MESSAGE]) for row in job.collect()])


def _check_tasks(job: DataFrame, options: SinkOptions) -> None:
    """Before any of them writes: a batch that an earlier run began must not have fewer."""
    run = job.sparkSession.sparkContext.getLocalProperty(RUN_PROPERTY)
    query_id, batch = options.query_id, options.batch
    assert query_id is not None, "a batch has its query"
    assert batch is not None, "and its number"
    if options.delivery == EXACTLY_ONCE and runs_seen().is_first(run and f"{run} {query_id}", batch):
        count = job._jdf.queryExecution().toRdd().getNumPartitions()
        check_tasks(range(count), options, query_id=query_id, batch=batch)


def _task_of(writer: MoldauWriter) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = pickle.dumps(writer.write(iter(rows)))
        yield pa.RecordBatch.from_pydict({MESSAGE: pa.array([written], pa.binary())})

    return write
