"""Which query, and which of its batches, a task works for: Spark tells every task, in properties of its job."""

from __future__ import annotations

from dataclasses import dataclass

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"
DESCRIPTION_PROPERTY = "spark.job.description"
RUN_PROPERTY = "spark.jobGroup.id"  # each run of a query is a group of jobs


@dataclass(frozen=True, slots=True)
class StreamingBatch:
    """The query's id is the one in its checkpoint: it lives through restarts, and a new checkpoint is a new query."""

    query_id: str
    batch: int


def streaming_batch() -> StreamingBatch | None:
    """The streaming batch of this task; None outside of one."""
    query_id, batch = job_property(QUERY_PROPERTY), job_property(BATCH_PROPERTY)
    return StreamingBatch(query_id, int(batch)) if query_id and batch else None


def job_property(name: str) -> str | None:
    """What Spark says about the job that this task is part of; None outside of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)
