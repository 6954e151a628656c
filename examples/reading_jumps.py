"""State of your own: each reading beside the one before it, by Spark's transformWithState.

A processor keeps something for each key from batch to batch, in a store that lives with the checkpoint: here the last
reading of a sensor. It is Spark's API as it is (`StatefulProcessor`, timers and maps and lists of state too); topics,
exactly once and lag are the pipeline's.

readings: {"sensor": "s1", "celsius": 20.5, "at": "2026-01-01T10:00:00Z"}

moldau pipeline run examples/reading_jumps.py --once
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from moldau.spark.pipelines.building import Pipeline, topic

pipeline = Pipeline("reading_jumps")
# Spark keeps this kind of state in RocksDB only, which comes with it.
pipeline.set(
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)
pipeline.stream(
    "readings",
    topic("readings", valueFormat="json", valueSchema="sensor string, celsius double, at timestamp"),
)


class Jumps(StatefulProcessor):
    """A row for each reading that is far from the one before it."""

    DEGREES = 5.0

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.last = handle.getValueState("last", "celsius double")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        before = self.last.get()[0] if self.last.exists() else None
        # The rows of a key come in no order that is promised.
        for row in sorted(rows, key=lambda row: row.at):
            if before is not None and abs(row.celsius - before) >= self.DEGREES:
                yield Row(sensor=key[0], at=row.at, before=before, celsius=row.celsius)
            before = row.celsius
        if before is not None:
            self.last.update((before,))

    def close(self) -> None:
        pass


@pipeline.view
def jumps(readings):
    return readings.groupBy("sensor").transformWithState(
        statefulProcessor=Jumps(),
        outputStructType="sensor string, at timestamp, before double, celsius double",
        outputMode="append",
        timeMode="None",
    )


pipeline.sink("alerts", topic("reading-jumps"), reads="jumps", key="sensor")
