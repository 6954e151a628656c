"""A driver of its own: queries that read a topic, process it and write to sinks, until all is done or it is killed.

Its argument is a JSON object: master, config and queries.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import SparkSession

from moldau.spark.workers import worker_python

Fields = dict[str, Any]
Process = Callable[[Iterator[Any]], Iterator[Any]]
# Small Arrow batches, so that a task that pauses in the middle has handed rows on.
ARROW_ROWS = 500
FAILURES_MAX = 20


def paced(pause_s: float, straggle_s: float) -> Process:
    """Rows with a state; half of a task's rows are on their way to the sink while it pauses.

    The first attempt of the first task pauses longer, so that Spark starts a second one beside it where it may.
    """

    def process(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        is_first = context.partitionId() == 0 and context.attemptNumber() == 0
        found = list(batches)
        for number, batch in enumerate(found):
            if number == len(found) // 2:
                time.sleep(straggle_s if is_first else pause_s)
            ids = batch.column(0)
            states = pc.binary_join_element_wise("state", pc.cast(pc.bit_wise_and(ids, 7), pa.string()), " ")
            yield pa.RecordBatch.from_arrays([ids, states], names=["id", "state"])

    return process


def start(session: SparkSession, query: Fields) -> Any:
    frame = session.readStream.format("moldau").options(**query["source"]).load()
    numbered = frame.selectExpr("cast(cast(value as string) as bigint) as id")
    processed = numbered.mapInArrow(paced(query["pause_s"], query["straggle_s"]), "id long, state string")
    writing = processed.selectExpr(*query["columns"]).writeStream.format(query["format"]).options(**query["options"])
    return writing.option("checkpointLocation", query["checkpoint"]).trigger(availableNow=True).start()


def wait_for_sources(query: Any) -> None:
    """One after the other: Spark gives up on a Python process that needs ten seconds to start, as one of many may."""
    while query.isActive and query.status["message"].startswith("Initializing"):
        time.sleep(0.1)


def run_all(session: SparkSession, queries: Sequence[Fields]) -> None:
    """Until all are done; one that fails starts again, as a supervisor would have it."""
    waiting, running = list(queries), list[tuple[Fields, Any]]()
    failures = 0
    while waiting or running:
        for query in waiting:
            running.append((query, start(session, query)))
            wait_for_sources(running[-1][1])
        ended = [each for each in running if not each[1].isActive]
        running = [each for each in running if each not in ended]
        waiting = [query for query, run in ended if run.exception() is not None]
        failures += len(waiting)
        for query, run in ended:
            print(f"{query['format']} ended: {run.exception()}", flush=True)
        assert failures <= FAILURES_MAX, "it fails again and again"
        time.sleep(0.2)


def main(job: Fields) -> None:
    os.environ["PYSPARK_PYTHON"] = worker_python()
    builder = SparkSession.builder.master(job["master"]).appName("exactly-once")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
        **job["config"],
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    run_all(session, job["queries"])
    session.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
