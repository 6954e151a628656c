"""OpenLineage events of a pipeline: what they say, and that they arrive."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.loading import load
from moldau.spark.pipelines.plan import Connector, Endpoint, Plan
from moldau.spark.pipelines.running.reports.lineage import Lineage, dataset, sender
from moldau.spark.pipelines.running.reports.metrics import MetricsServer, exposition
from tests.spark.pipelines.pipelines import Outcome, Pipelines
from tests.spark.topics import Topics

PLAN = Plan("shop", settings={"bootstrap.servers": "one:9092,two:9092"})
PIPELINE = """\
create stream orders from topic '{topic}' with (valueFormat = json, valueSchema = 'id bigint, amount double');
create table names from topic '{names}' key (id) with (valueFormat = json, valueSchema = 'id bigint, name string');
create view named as select o.id, n.name from orders o left join names n on o.id = n.id;
create sink copies into topic '{topic}-copies' as select * from named;
create sink failing into topic '{topic}-failed' as select cast(raise_error('on purpose') as string) as x from orders;
"""


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (Endpoint(Connector.TOPIC, "orders"), ("kafka://one:9092", "orders")),
        (Endpoint(Connector.TOPIC, "orders", {"bootstrap.servers": "b:1"}), ("kafka://b:1", "orders")),
        (Endpoint(Connector.DELTA, "/lake/orders"), ("file", "/lake/orders")),
        (Endpoint(Connector.DELTA, "s3a://bucket/lake/orders"), ("s3a://bucket", "lake/orders")),
        (
            Endpoint(Connector.DATABASE, "public.orders", {"url": "postgresql://me:secret@db:5432/shop"}),
            ("postgres://db:5432", "shop.public.orders"),
        ),
        (Endpoint(Connector.ICEBERG, "lake.orders"), ("iceberg", "lake.orders")),
        (Endpoint(Connector.CONSOLE, ""), ("console", "console")),
    ],
)
def test_datasets_are_named_as_openlineage_does(endpoint: Endpoint, expected: tuple[str, str]) -> None:
    told = dataset(endpoint, PLAN)
    assert (told["namespace"], told["name"]) == expected


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that keeps what is posted to OpenLineage's path."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fits = self.path == "/api/v1/lineage" and self.headers["Content-Type"] == "application/json"
            if fits:
                got.append(json.loads(body))
            self.send_response(201 if fits else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_events_are_posted_or_appended_in_order(tmp_path: Path) -> None:
    said: list[str] = []
    events = [{"number": number} for number in range(5)]
    with receiver() as (url, got):
        send = sender(url, said.append)
        for event in events:
            send(event)
        send.close()
    assert got == events
    file = tmp_path / "lineage.jsonl"
    send = sender(str(file), said.append)
    for event in events:
        send(event)
    send.close()
    assert [json.loads(line) for line in file.read_text().splitlines()] == events
    assert said == []
    gone = sender(url, said.append)
    for event in events:
        gone(event)
    gone.close()
    assert len(said) == 1
    assert said[0].startswith(f"lineage does not reach {url}/api/v1/lineage: ")


def test_a_server_that_answers_nonsense_is_told_of_and_what_follows_is_sent() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                connection.recv(1 << 16)
                connection.sendall(b"nonsense\r\n\r\n")
                connection.close()
                got.append(1)

        got: list[int] = []
        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        send = sender(f"http://127.0.0.1:{server.getsockname()[1]}", said.append)
        send({"number": 1})
        send({"number": 2})
        send.close()
        answering.join(30)
    assert (len(got), len(said)) == (2, 1)
    assert "nonsense" in said[0]


def check_form(event: dict[str, Any]) -> None:
    """What OpenLineage's schema requires of a run event and of every facet."""
    assert {"eventTime", "producer", "schemaURL", "run", "job"} <= set(event)
    uuid.UUID(event["run"]["runId"])
    assert {"namespace", "name"} <= set(event["job"])
    datasets = event["inputs"] + event["outputs"]
    assert all({"namespace", "name"} <= set(one) for one in datasets)
    for holder in (event["run"], event["job"], *datasets):
        for facet in holder.get("facets", {}).values():
            assert facet["_producer"].startswith("https://")
            assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


@pytest.mark.long
def test_a_run_is_told_from_its_start_to_its_end(pipelines: Pipelines, topics: Topics, tmp_path: Path) -> None:
    topic, names = topics.create("orders"), topics.create("names")
    topics.produce(topic, ['{"id": 1, "amount": 2}'])
    path = pipelines.written(PIPELINE.format(topic=topic, names=names))
    plan, file = load(path, {"bootstrap.servers": pipelines.bootstrap}), tmp_path / "lineage.jsonl"
    send = sender(str(file), print)
    lineage = Lineage(plan, send, clock=SystemClock())
    server = MetricsServer(plan.name, host="127.0.0.1", port=0)

    def watch(outcome: Outcome) -> None:
        lineage.show(outcome.runner.queries)
        server.show(outcome.runner.queries)

    outcome = pipelines.run(path, watch=watch)
    lineage.finish(outcome.runner.queries)
    send.close()
    server.finish(outcome.runner.queries)
    events = [json.loads(line) for line in file.read_text().splitlines()]
    for event in events:
        check_form(event)
    # A run that takes long is told again and again.
    ends = [one for one in events if one["eventType"] != "RUNNING"]
    told = {name: [one for one in ends if one["job"]["name"] == f"pipeline.{name}"] for name in ("copies", "failing")}
    assert [one["eventType"] for one in told["copies"]] == ["START", "COMPLETE"]
    assert len({one["run"]["runId"] for one in told["copies"]}) == 1
    at = f"kafka://{pipelines.bootstrap}"
    assert {(one["namespace"], one["name"]) for one in told["copies"][0]["inputs"]} == {(at, topic), (at, names)}
    (output,) = told["copies"][0]["outputs"]
    assert (output["namespace"], output["name"]) == (at, f"{topic}-copies")
    assert output["facets"]["schema"]["fields"] == [
        {"name": "id", "type": "bigint"},
        {"name": "name", "type": "string"},
    ]
    assert [one["eventType"] for one in told["failing"]] == ["START", "FAIL"]
    assert "on purpose" in told["failing"][1]["run"]["facets"]["errorMessage"]["message"]
    statuses = {one.job.sink.name: one.as_json() for one in outcome.runner.queries}
    page = exposition(plan.name, statuses)
    assert 'moldau_query_rows_total{pipeline="pipeline",query="copies"} 1\n' in page
    assert f'query="copies",topic="{topic}",partition="0"}} 0\n' in page
