"""A plan's sinks as Spark's writers: where results go, by which key, how often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.plan import Connector, Endpoint, Expectation, Output, Place, Plan, Query, Schedule, Sink
from moldau.spark.pipelines.sources import FILE_FORMATS, OPERATION, RECORD_COLUMNS, TABLE_OPTIONS, topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMATS = {
    Connector.TOPIC: "moldau",
    Connector.DELTA: "moldau_delta",
    Connector.ICEBERG: "moldau_iceberg",
    Connector.DATABASE: "moldau_sql",
    Connector.CONSOLE: "console",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One sink with the frame that goes into it."""

    sink: Sink
    frame: DataFrame
    query_name: str
    checkpoint: Path
    schedule: Schedule
    options: dict[str, str]

    @property
    def is_streaming(self) -> bool:
        return bool(self.frame.isStreaming)

    def scheduled(self, schedule: Schedule) -> Job:
        return replace(self, schedule=schedule)

    def start(self) -> StreamingQuery:
        writer: DataStreamWriter = (
            self.frame.writeStream.format(_format(self.sink.endpoint))
            .queryName(self.query_name)
            .option("checkpointLocation", str(self.checkpoint))
            .options(**self.options)
            .outputMode(_output(self.sink).value)
        )
        if self.schedule.is_once:
            writer = writer.trigger(availableNow=True)
        elif self.schedule.interval_ms is not None:
            writer = writer.trigger(processingTime=f"{self.schedule.interval_ms} milliseconds")
        return writer.start()

    def write_all(self) -> None:
        """The whole of a result that is made of tables alone."""
        if self.sink.endpoint.connector is Connector.CONSOLE:
            self.frame.show(1_000, truncate=False)
            return
        mode = "append" if self.sink.is_upsert or self.sink.endpoint.connector is Connector.TOPIC else "overwrite"
        self.frame.write.format(_format(self.sink.endpoint)).options(**self.options).mode(mode).save()


def job_of(sink: Sink, frame: DataFrame, plan: Plan, folder: Path) -> Job:
    name = f"{plan.name}.{sink.name}"
    options = _options(sink, frame, plan)
    return Job(sink, _written(sink, frame), name, folder / sink.name, plan.schedule_of(sink), options)


def dead_letter_sink(rule: Expectation, plan: Plan) -> Sink:
    """Rows that break an expectation, as JSON, in a topic of their own."""
    topic = f"{plan.name}.{rule.on}.dead-letters"
    endpoint = Endpoint(Connector.TOPIC, topic, {"valueFormat": "json"})
    return Sink(f"{rule.on}.{rule.name}.dead-letters", endpoint, Query((rule.on,)), Place(*rule.place))


def with_reason(frame: DataFrame, rule: Expectation, plan: Plan) -> DataFrame:
    """Whoever reads a dead letter learns which pipeline refused it and why."""
    from pyspark.sql import functions as f

    told = {"moldau.query": plan.name, "moldau.relation": rule.on, "moldau.reason": f"{rule.name}: {rule.condition}"}
    headers = f.array(
        *(f.struct(f.lit(key).alias("key"), f.lit(text).cast("binary").alias("value")) for key, text in told.items())
    )
    plain = [name for name in frame.columns if name not in RECORD_COLUMNS.values()]
    key = [f.col("_key").alias("key")] if "_key" in frame.columns else []
    return frame.select(*key, f.struct(*plain).alias("value"), headers.alias("headers"))


def _format(endpoint: Endpoint) -> str:
    if endpoint.connector is not Connector.FILES:
        return FORMATS[endpoint.connector]
    kind = endpoint.options.get("format", "parquet")
    return kind if kind in FILE_FORMATS else "parquet"


def _output(sink: Sink) -> Output:
    return sink.output or (Output.UPDATE if sink.is_upsert else Output.APPEND)


def _written(sink: Sink, frame: DataFrame) -> DataFrame:
    """What is known about the source's records stays behind; a topic's rows get their key."""
    from pyspark.sql import functions as f

    names = [name for name in frame.columns if name not in RECORD_COLUMNS.values()]
    connector = sink.endpoint.connector
    if connector in TABLE_OPTIONS and sink.is_upsert:
        return frame.select(*names)
    names = [name for name in names if name != OPERATION or connector is Connector.TOPIC]
    if connector is not Connector.TOPIC or not sink.keys or "key" in names:
        return frame.select(*names)
    columns = [f.col(key) for key in sink.keys]
    key = columns[0].cast("string") if len(columns) == 1 else f.to_json(f.struct(*columns))
    value = f.col("value") if "value" in names else f.struct(*names).alias("value")
    return frame.select(key.alias("key"), value)


def _options(sink: Sink, frame: DataFrame, plan: Plan) -> dict[str, str]:
    endpoint = sink.endpoint
    said: dict[str, Any] = {key: value for key, value in endpoint.options.items() if key != "format"}
    if endpoint.connector is Connector.TOPIC:
        known = {"key", "value", "headers", "topic", "partition"}
        typed = {} if set(frame.columns) <= known else {"valueFormat": "json"}
        return {**typed, **topic_options(endpoint, plan), "topic": endpoint.location}
    if endpoint.connector in TABLE_OPTIONS:
        where = TABLE_OPTIONS[endpoint.connector]
        upsert = {"mode": "upsert", "keys": ",".join(sink.keys)} if sink.is_upsert else {}
        if sink.is_upsert and OPERATION in frame.columns:
            upsert["operationColumn"] = OPERATION
        return {where: endpoint.location, **upsert, **said}
    return {**said, "path": endpoint.location} if endpoint.connector is Connector.FILES else said
