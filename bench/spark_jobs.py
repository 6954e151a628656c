"""Timed jobs on one connector, one for each line of JSON on stdin: the same for ours and for Spark's own.

Its arguments: the name of the format, the master, and the packages that Spark has to fetch, if any. It runs in the
environment of either connector, so it knows nothing but pyspark.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import SparkSession

END_S_MAX = 7200
WARM_UP_BATCHES = 3
Fields = dict[str, Any]


class Jobs:
    """Every public method is a job and answers in seconds."""

    def __init__(self, format_name: str, master: str, packages: str) -> None:
        self.format = format_name
        builder = SparkSession.builder.master(master).appName(f"bench-{format_name}")
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **({"spark.jars.packages": packages} if packages else {}),
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def version(self) -> str:
        return self.spark.version

    def read(self, source: Fields) -> float:
        """Every column of every record, to nowhere."""
        begun = time.monotonic()
        frame = self.spark.read.format(self.format).options(**source).load()
        frame.write.format("noop").mode("overwrite").save()
        return time.monotonic() - begun

    def write(self, sink: Fields, records: int, size: int) -> float:
        frame = self.spark.range(0, records, 1, 2).selectExpr(
            "cast(id as string) as key", f"rpad(cast(id as string), {size}, 'x') as value"
        )
        begun = time.monotonic()
        frame.write.format(self.format).mode("append").options(**sink).save()
        return time.monotonic() - begun

    def write_typed(self, sink: Fields, records: int) -> float:
        """Rows of columns, which a format makes values of."""
        row = "struct(id, concat('name ', id) as name, id * 0.5D as amount) as value"
        frame = self.spark.range(0, records, 1, 2).selectExpr("cast(id as string) as key", row)
        begun = time.monotonic()
        frame.write.format(self.format).mode("append").options(**sink).save()
        return time.monotonic() - begun

    def read_available(self, source: Fields, checkpoint: str) -> float:
        return self._to_the_end(self._reading(source).writeStream.format("noop"), checkpoint)

    def copy_available(self, source: Fields, sink: Fields, checkpoint: str) -> float:
        return self._to_the_end(self._copying(source, sink), checkpoint)

    def read_live(self, source: Fields, checkpoint: str, seconds: float) -> list[float]:
        return self._each_second(self._reading(source).writeStream.format("noop"), checkpoint, seconds)

    def copy_live(self, source: Fields, sink: Fields, checkpoint: str, seconds: float) -> list[float]:
        return self._each_second(self._copying(source, sink), checkpoint, seconds)

    def _reading(self, source: Fields) -> Any:
        return self.spark.readStream.format(self.format).options(**source).load()

    def _copying(self, source: Fields, sink: Fields) -> Any:
        return self._reading(source).select("key", "value").writeStream.format(self.format).options(**sink)

    def _to_the_end(self, writing: Any, checkpoint: str) -> float:
        begun = time.monotonic()
        query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(END_S_MAX), "the query has no end"
        return time.monotonic() - begun

    def _each_second(self, writing: Any, checkpoint: str, seconds: float) -> list[float]:
        """How long each batch took, from its trigger to its end, once the first ones have warmed everything up."""
        query = writing.option("checkpointLocation", checkpoint).trigger(processingTime="1 second").start()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert query.isActive, query.exception()
            time.sleep(0.2)
        query.stop()
        progress = [json.loads(each.json) for each in query.recentProgress]
        spent = [each["durationMs"]["triggerExecution"] / 1000 for each in progress if each["numInputRows"]]
        return spent[WARM_UP_BATCHES:]


def main(format_name: str, master: str, packages: str) -> None:
    # Whatever else speaks on stdout, Spark's look for packages above all, must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    jobs = Jobs(format_name, master, packages)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"answer": getattr(jobs, asked["job"])(**asked["fields"])}
        except Exception as wrong:
            answer = {"failed": f"{type(wrong).__name__}: {wrong}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
