"""What is shown of a project's flows, by what its updates tell."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from moldau.spark.pipelines.declarative.elements import DataSource, Elements, Flow, Output, OutputKind
from moldau.spark.pipelines.declarative.project import Project
from moldau.spark.pipelines.declarative.runner import ProjectRunner
from moldau.spark.pipelines.declarative.server import ConnectServer
from moldau.spark.pipelines.declarative.update import FlowEvent, Step
from moldau.spark.pipelines.plan import Plan, Schedule
from moldau.spark.pipelines.running.state.folders import PipelineFolder
from tests.spark.topics import Topics


def reading(topics: Topics, topic: str) -> Elements:
    elements = Elements()
    elements.add_output(Output("orders", OutputKind.STREAMING_TABLE))
    options = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}
    elements.add_flow(Flow("orders", "orders", (), (DataSource("moldau", options, is_streaming=True),)))
    return elements


def test_a_flow_that_was_edited_shows_what_is_left_of_the_topic_that_it_reads_since(
    topics: Topics, tmp_path: Path
) -> None:
    project, folder = Project("shop", tmp_path / "spark-pipeline.yml"), PipelineFolder(Plan("shop"), tmp_path)
    no_server = cast(ConnectServer, None)
    runner = ProjectRunner(no_server, project, folder, schedule=Schedule(10_000), say=lambda _: None)
    lags = []
    for count in (3, 5):
        topic = topics.create()
        topics.produce(topic, [b"{}"] * count)
        runner._defined(reading(topics, topic))
        runner._heard(FlowEvent("orders", Step.QUEUED))
        lags.append(runner.queries[0].as_json()["lag"])
    assert lags == [3, 5]
