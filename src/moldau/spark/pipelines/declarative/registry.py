"""Definitions on their way to Spark: noted here for the graph, the status and the lag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from pyspark.errors import ParseException
from pyspark.pipelines import output as outputs
from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.pipelines.flow import Flow as SparkFlow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.sql.connect import proto

from moldau.spark.pipelines.declarative.elements import DataSource, Elements, Flow, Output, OutputKind
from moldau.spark.pipelines.declarative.statements import inputs_of, read_statements
from moldau.spark.pipelines.running.reasons import said_by

KINDS: dict[type[outputs.Output], OutputKind] = {
    outputs.StreamingTable: OutputKind.STREAMING_TABLE,
    outputs.MaterializedView: OutputKind.MATERIALIZED_VIEW,
    outputs.TemporaryView: OutputKind.TEMPORARY_VIEW,
    outputs.Sink: OutputKind.SINK,
}


class WrongSql(Exception):
    """A statement that Spark can't parse, with the file that has it."""


class NotingRegistry(GraphElementRegistry):
    def __init__(self, spark: GraphElementRegistry, client: Any, elements: Elements) -> None:
        self._spark = spark
        self._client = client
        self._elements = elements

    def register_output(self, output: outputs.Output) -> None:
        sink = DataSource(output.format, dict(output.options)) if isinstance(output, outputs.Sink) else None
        self._elements.add_output(Output(output.name, KINDS[type(output)], sink))
        self._spark.register_output(output)

    def register_flow(self, flow: SparkFlow) -> None:
        def noted() -> Any:
            frame = flow.func()
            plan = getattr(frame, "_plan", None)
            if plan is not None:  # anything else is for Spark to refuse
                self._elements.add_flow(_flow(flow.name, flow.target, plan.plan(self._client)))
            return frame

        self._spark.register_flow(replace(flow, func=noted))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        self._elements.add_flow(Flow(flow.name or flow.target, flow.target, (flow.source,)))
        self._spark.register_auto_cdc_flow(flow)

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        read_statements(sql_text, self._elements)
        try:
            self._spark.register_sql(sql_text, file_path)
        except ParseException as wrong:
            raise WrongSql(f"{file_path}: {said_by(wrong)}") from None


def _flow(name: str, target: str, plan: Message) -> Flow:
    inputs: list[str] = []
    sources = []
    for read in _reads(plan):
        if isinstance(read, proto.SQL):
            inputs += inputs_of(read.query)
        elif read.HasField("named_table"):
            inputs.append(read.named_table.unparsed_identifier.replace("`", ""))
        elif read.HasField("data_source"):
            source = read.data_source
            sources.append(DataSource(source.format, dict(source.options), read.is_streaming))
    return Flow(name, target, tuple(dict.fromkeys(inputs)), tuple(sources))


def _reads(message: Message) -> Iterator[Any]:
    if isinstance(message, proto.Read | proto.SQL):
        yield message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.GetOptions().map_entry:
            continue
        for each in [value] if isinstance(value, Message) else value:
            yield from _reads(each)
