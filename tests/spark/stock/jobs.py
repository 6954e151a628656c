"""Jobs on the stock connector, one for each line of JSON on stdin, answered by a line on stdout.

It runs in the environment of the stock connector, so it knows nothing but pyspark.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

END_S_MAX = 600
Fields = dict[str, Any]


def text(value: bytes | bytearray | None) -> str | None:
    return None if value is None else bytes(value).decode()


def row_of(record: Any) -> Fields:
    """A record as JSON can carry it; times in milliseconds."""
    fields: Fields = record.asDict()
    headers = fields.get("headers") or []
    return {
        **{name: fields[name] for name in ("topic", "partition", "offset", "timestampType")},
        "key": text(fields["key"]),
        "value": text(fields["value"]),
        "timestamp": fields["millis"],
        "headers": [[header["key"], text(header["value"])] for header in headers],
    }


def rows_of(frame: DataFrame) -> list[Fields]:
    ordered = frame.selectExpr("*", "unix_millis(timestamp) as millis").orderBy("topic", "partition", "offset")
    return [row_of(record) for record in ordered.collect()]


class Jobs:
    """Every public method is a job."""

    def __init__(self, packages: str) -> None:
        builder = SparkSession.builder.master("local[2]").appName("stock").config("spark.jars.packages", packages)
        for name, value in (
            ("spark.ui.enabled", "false"),
            ("spark.ui.showConsoleProgress", "false"),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.sql.session.timeZone", "UTC"),
        ):
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.running: Any = None

    def version(self) -> str:
        return self.spark.version

    def read(self, options: Fields) -> list[Fields]:
        return rows_of(self.spark.read.format("kafka").options(**options).load())

    def write(self, rows: list[list[Any]], schema: str, expressions: list[str], options: Fields) -> None:
        frame = self.spark.createDataFrame([tuple(row) for row in rows], schema).selectExpr(*expressions)
        frame.write.format("kafka").options(**options).save()

    def read_available(self, options: Fields, checkpoint: str) -> Fields:
        """A streaming query over all that is there: the rows of each batch, and where the last one ended."""
        batches: list[list[Fields]] = []
        frame = self.spark.readStream.format("kafka").options(**options).load()
        writing = frame.writeStream.foreachBatch(lambda rows, _: batches.append(rows_of(rows)))
        query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination(END_S_MAX)
        end = json.loads(query.recentProgress[-1].json)["sources"][0]["endOffset"] if batches else None
        return {"batches": batches, "end": end}

    def start_copy(self, source: Fields, sink: Fields, checkpoint: str, every: str | None = None) -> None:
        """From topic to topic, to the end of what is there, or on and on if `every` names a pace."""
        frame = self.spark.readStream.format("kafka").options(**source).load()
        writing = frame.select("key", "value").writeStream.format("kafka").options(**sink)
        pace = {"processingTime": every} if every else {"availableNow": True}
        self.running = writing.option("checkpointLocation", checkpoint).trigger(**pace).start()

    def end_copy(self, stop: bool) -> None:
        if stop:
            self.running.stop()
        assert self.running.awaitTermination(END_S_MAX), "the copy has no end"

    def count_by_key(self, source: Fields, sink: Fields, checkpoint: str) -> None:
        """A stateful query whose results go to a topic."""
        frame = self.spark.readStream.format("kafka").options(**source).load()
        counted = frame.groupBy("key").count()
        rows = counted.selectExpr("key", "cast(count as string) as value")
        writing = rows.writeStream.outputMode("update").format("kafka").options(**sink)
        query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination(END_S_MAX)


def main(packages: str) -> None:
    # Whatever else speaks on stdout, Spark's look for packages above all, must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    jobs = Jobs(packages)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"answer": getattr(jobs, asked["job"])(**asked["fields"])}
        except Exception as wrong:
            answer = {"failed": f"{type(wrong).__name__}: {wrong}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
