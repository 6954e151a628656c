"""A plan's sinks as Spark's writers: where results go, by which key, how often."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moldau.client.security import ClientSettings
from moldau.schemas.registry_client import RegistryError
from moldau.spark.clients.settings import client_settings
from moldau.spark.dead_letters.letters import RECORD_LIMIT, letters_config
from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import quoted_name
from moldau.spark.option_values import OptionError, OptionValues
from moldau.spark.options import sink_options
from moldau.spark.pipelines.plan import Connector, Endpoint, Output, PipelineError, Plan, Schedule, Sink
from moldau.spark.pipelines.running.frames.plan_frames import Frames
from moldau.spark.pipelines.running.frames.sources import (
    DELETED,
    FILE_FORMATS,
    OPERATION,
    RECORD_COLUMNS,
    TABLE_OPTIONS,
    topic_options,
)
from moldau.spark.pipelines.running.frames.table_stores import table_options
from moldau.spark.pipelines.running.joining.batches import TableJoin, table_join
from moldau.spark.pipelines.running.results.decisions import DecidedBatches, Decision, decision_of, letter_options
from moldau.spark.pipelines.running.state.checkpoint_files import quick_checkpoint
from moldau.spark.pipelines.xml_values import is_xml, text_options, written
from moldau.spark.streaming_batch import QUERY_PROPERTY
from moldau.spark.writing.new_topics import CONFIG_PREFIX, make_topic, new_topic_settings

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
CONSOLE_ROWS = 1_000
# Spark refuses a new query a folder that is not empty, such as one in which a full disk or a kill ended the first batch
# half-way, for ever. The folder of a pipeline's checkpoint is its own.
STARTS_ANYWHERE = ("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")

# A result with a column `value` and no others than these is records, not rows.
WRITTEN_COLUMNS = {"key", "value", "headers", "topic", "partition"}
# Spark gives no update mode to sinks in Python. Ours take batches by number instead, each once all the same.
FORMATS_WITHOUT_UPDATE = ("moldau", "moldau_delta", "moldau_iceberg", "moldau_sql")


@dataclass(frozen=True)
class BatchDelivery:
    """Writes a query's batches as batches: by the query's id and the batch's number each is there once."""

    checkpoint: str
    format_name: str
    options: dict[str, str]
    part: str = ""  # of a query whose batches go to more than one place

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self.format_name == FORMATS[Connector.CONSOLE]:
            batch.show(CONSOLE_ROWS, truncate=False)
            return
        numbered = {**self.options, "queryId": self._query_id(batch) + self.part, "batchId": str(number)}
        if self.format_name == FORMATS[Connector.TOPIC] and hasattr(batch.sparkSession, "_sc"):
            from moldau.spark.writing.batch_job import write_batch

            write_batch(batch, numbered)
        else:
            batch.write.format(self.format_name).options(**numbered).mode("append").save()

    def _query_id(self, batch: DataFrame) -> str:
        """The id in the checkpoint: a batch's number means something within it, and nothing after a reset."""
        session = batch.sparkSession
        if hasattr(session, "_sc"):
            return str(session.sparkContext.getLocalProperty(QUERY_PROPERTY))
        # A Connect server runs this beside itself, in a session that knows of no query and has no context to ask.
        (metadata,) = session.read.text(f"{self.checkpoint}/metadata").collect()
        return str(json.loads(metadata[0])["id"])


@dataclass(frozen=True, slots=True)
class Job:
    """One sink with the frame that goes into it."""

    sink: Sink
    frame: DataFrame
    query_name: str
    checkpoint: str
    schedule: Schedule
    options: dict[str, str]
    plan: Plan
    decision: Decision | None = None
    join: TableJoin | None = None
    broken: Counter[str] = field(default_factory=Counter)  # rows that only the batches of this job know about

    @property
    def is_streaming(self) -> bool:
        return bool(self.frame.isStreaming)

    def scheduled(self, schedule: Schedule) -> Job:
        return replace(self, schedule=schedule)

    def taken(self) -> Iterator[tuple[str, int]]:
        """What is in `broken`, each once: its batches go on to count while this is read."""
        while self.broken:
            yield self.broken.popitem()

    def check(self) -> None:
        """What the topic's writer and its registry would refuse; nothing is written or registered.

        Raises PipelineError.
        """
        if self.sink.endpoint.connector is not Connector.TOPIC:
            return
        from moldau.spark.writing.registered_schemas import check_schemas
        from moldau.spark.writing.rows_to_records import check_columns

        try:
            options = sink_options(self.options, streaming=True)
            check_columns(self.frame.schema, options)
            check_schemas(self.frame.schema, options)
        except (OptionError, FormatError, RegistryError) as wrong:
            raise PipelineError(self.sink.place, f"sink {self.sink.name}: {wrong}") from None

    def start(self) -> StreamingQuery:
        self._prepare()
        self.frame.sparkSession.conf.set(*STARTS_ANYWHERE)
        frame = self.decision.frame if self.decision else self.join.frame if self.join else self.frame
        writer = self._writer().queryName(self.query_name).option("checkpointLocation", self.checkpoint)
        if self.schedule.is_once:
            writer = writer.trigger(availableNow=True)
        elif self.schedule.interval_ms is not None:
            writer = writer.trigger(processingTime=f"{self.schedule.interval_ms} milliseconds")
        with quick_checkpoint(frame, self.checkpoint):
            return writer.start()

    def _writer(self) -> DataStreamWriter:
        kind, output = _format(self.sink.endpoint), _output(self.sink)
        delivery = BatchDelivery(self.checkpoint, kind, self.options)
        if self.decision is not None:
            writer = self.decision.frame.writeStream.outputMode(output.value)
            return writer.foreachBatch(self._decided(self.decision, kind))
        if self.join is not None and kind in FORMATS_WITHOUT_UPDATE:
            joined = self.join.delivery(
                self.checkpoint, lambda frame, number: delivery(_written(self.sink, frame), number), self.broken
            )
            return self.join.frame.writeStream.foreachBatch(joined)
        writer = self.frame.writeStream.outputMode(output.value)
        if output is Output.UPDATE and kind in FORMATS_WITHOUT_UPDATE:
            return writer.foreachBatch(delivery)
        return writer.format(kind).options(**self.options)

    def _decided(self, decision: Decision, kind: str) -> DecidedBatches:
        sink, results = self.sink, BatchDelivery(self.checkpoint, kind, self.options)
        letters = BatchDelivery(self.checkpoint, FORMATS[Connector.TOPIC], letter_options(self.plan), "-letters")
        return DecidedBatches(
            self.plan,
            sink,
            decision.relation,
            self.query_name,
            self.checkpoint,
            lambda batch, number: results(_written(sink, batch), number),
            letters,
            self.broken,
        )

    def write_all(self) -> None:
        """The whole of a result that is made of tables alone."""
        if self.sink.endpoint.connector is Connector.CONSOLE:
            self.frame.show(CONSOLE_ROWS, truncate=False)
            return
        self._prepare()
        mode = "append" if self.sink.is_upsert or self.sink.endpoint.connector is Connector.TOPIC else "overwrite"
        self.frame.write.format(_format(self.sink.endpoint)).options(**self.options).mode(mode).save()

    def _prepare(self) -> None:
        """The topic is made before the first result: a transaction can't note progress in one that is not there."""
        if self.sink.endpoint.connector is Connector.TOPIC:
            _make_topic(self.options, self.sink.endpoint.location)
        for topic in self.decision.topics(self.plan) if self.decision else ():
            _make_topic(letters_topic_options(self.plan.read_by(self.sink.query)), topic)


def letters_topic_options(plan: Plan) -> dict[str, str]:
    """For a topic that takes the largest records that the plan's topics may have."""
    limits = [
        int(limit)
        for source in plan.sources
        if source.endpoint.connector is Connector.TOPIC
        for topic in source.endpoint.location.split(",")
        for limit in letters_config(client_of(source.endpoint, plan), topic.strip()).values()
    ]
    own = {f"{CONFIG_PREFIX}{RECORD_LIMIT}": str(max(limits))} if limits else {}
    return {**letter_options(plan), **own}


def client_of(endpoint: Endpoint, plan: Plan) -> ClientSettings:
    return client_settings(OptionValues(topic_options(endpoint, plan)), side="consumer")


def _make_topic(options: dict[str, str], topic: str) -> None:
    settings = new_topic_settings({**options, "topic": topic})
    make_topic(client_settings(OptionValues(options), side="producer"), topic, settings)


def job_of(sink: Sink, frames: Frames, plan: Plan, checkpoint: str) -> Job:
    name, frame = f"{plan.name}.{sink.name}", frames.of(sink.query)
    options, decision = _options(sink, frame, plan), decision_of(sink, frame, frames, plan)
    join = table_join(frames, plan, sink.query) if decision is None else None
    return Job(sink, _written(sink, frame), name, checkpoint, plan.schedule_of(sink), options, plan, decision, join)


def _format(endpoint: Endpoint) -> str:
    if endpoint.connector is not Connector.FILES:
        return FORMATS[endpoint.connector]
    kind = endpoint.options.get("format", "parquet")
    return kind if kind in FILE_FORMATS else "parquet"


def _output(sink: Sink) -> Output:
    return sink.output or (Output.UPDATE if sink.is_upsert else Output.APPEND)


def _written(sink: Sink, frame: DataFrame) -> DataFrame:
    from pyspark.sql.types import StructType

    made, options = _as_records(sink, frame), sink.endpoint.options
    if sink.endpoint.connector is not Connector.TOPIC or not is_xml(options):
        return made
    is_row = isinstance(made.schema["value"].dataType, StructType)  # records may have text already
    return made.withColumn("value", written(made["value"], options)) if is_row else made


def _as_records(sink: Sink, frame: DataFrame) -> DataFrame:
    """What is known about the source's records stays behind; a topic's rows get their key."""
    from pyspark.sql import functions as f

    names = [name for name in frame.columns if name not in RECORD_COLUMNS.values()]
    connector = sink.endpoint.connector
    if connector in TABLE_OPTIONS and sink.is_upsert:
        return frame.select(*map(quoted_name, names))
    names = [name for name in names if name != OPERATION or connector is Connector.TOPIC]
    if connector is not Connector.TOPIC or (_are_records(frame) and (not sink.keys or "key" in names)):
        return frame.select(*map(quoted_name, names))
    value = f.col("value") if _are_records(frame) else f.struct(*map(quoted_name, names))
    if not sink.keys:
        return frame.select(value.alias("value"))
    columns = [f.col(quoted_name(key)) for key in sink.keys]
    key = columns[0].cast("string") if len(columns) == 1 else f.to_json(f.struct(*columns))
    if sink.is_upsert and OPERATION in names:
        # A deletion is a record without a value, which a compacted topic forgets the row by.
        row = f.struct(*(quoted_name(name) for name in names if name != OPERATION))
        value = f.when(f.col(OPERATION) != DELETED, row)
    return frame.select(key.alias("key"), value.alias("value"))


def _are_records(frame: DataFrame) -> bool:
    """Whether a result is records already. Else it is rows, and a column of whatever name is part of the value."""
    names = {name for name in frame.columns if name not in RECORD_COLUMNS.values()}
    return "value" in names and names <= WRITTEN_COLUMNS


def _options(sink: Sink, frame: DataFrame, plan: Plan) -> dict[str, str]:
    endpoint = sink.endpoint
    known = table_options(endpoint, frame.sparkSession)
    said: dict[str, Any] = {key: value for key, value in known.items() if key != "format"}
    if endpoint.connector is Connector.TOPIC:
        typed = {} if _are_records(frame) else {"valueFormat": "json"}
        options = {**typed, **topic_options(endpoint, plan), "topic": endpoint.location}
        return text_options(options) if is_xml(options) else options
    if endpoint.connector in TABLE_OPTIONS:
        where = TABLE_OPTIONS[endpoint.connector]
        upsert = {"mode": "upsert", "keys": ",".join(sink.keys)} if sink.is_upsert else {}
        if sink.is_upsert and OPERATION in frame.columns:
            upsert["operationColumn"] = OPERATION
        return {where: endpoint.location, **upsert, **said}
    return {**said, "path": endpoint.location} if endpoint.connector is Connector.FILES else said
