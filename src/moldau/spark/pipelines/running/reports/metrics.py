"""A running pipeline's figures for Prometheus: its text format, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from moldau.spark.pipelines.running.runner import Running

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Figure(NamedTuple):
    name: str
    kind: str
    help: str


RUNNING = Figure("moldau_query_running", "gauge", "1 while the query runs, 0 while it waits to restart or has ended")
ROWS = Figure("moldau_query_rows_total", "counter", "Rows read in this run")
RATE = Figure("moldau_query_rows_per_second", "gauge", "Rows a second of the newest batch")
BATCH = Figure("moldau_query_batch", "gauge", "Number of the newest batch")
DURATION = Figure("moldau_query_batch_duration_seconds", "gauge", "Duration of the newest batch")
LAG = Figure("moldau_query_lag_records", "gauge", "Records of a partition that are not read yet")
WATERMARK = Figure("moldau_query_watermark_timestamp_seconds", "gauge", "Watermark of the newest batch")
RESTARTS = Figure("moldau_query_restarts_total", "counter", "Restarts in this run")
BROKEN = Figure("moldau_query_broken_rows_total", "counter", "Rows that broke an expectation in this run")
REJECTED = Figure("moldau_query_rejected_records_total", "counter", "Records that could not be read, over all runs")
FIGURES = (RUNNING, ROWS, RATE, BATCH, DURATION, LAG, WATERMARK, RESTARTS, BROKEN, REJECTED)

Sample = tuple[Figure, dict[str, str], float]


def exposition(pipeline: str, queries: Mapping[str, Mapping[str, Any]]) -> str:
    """The page; `queries` are statuses by name, as `Running.as_json` makes them."""
    samples = [sample for name, told in queries.items() for sample in _samples(pipeline, name, told)]
    lines = []
    for figure in FIGURES:
        lines += [f"# HELP {figure.name} {figure.help}", f"# TYPE {figure.name} {figure.kind}"]
        lines += [f"{figure.name}{_labels(labels)} {value}" for kind, labels, value in samples if kind == figure]
    return "\n".join(lines) + "\n"


def _samples(pipeline: str, query: str, told: Mapping[str, Any]) -> Iterator[Sample]:
    own = {"pipeline": pipeline, "query": query}
    yield RUNNING, own, int(told["state"] == "running")
    yield ROWS, own, told["rows"]
    yield RATE, own, told["rows_a_second"]
    yield BATCH, own, told["batch"]
    yield DURATION, own, told["batch_ms"] / 1000
    yield RESTARTS, own, told["restarts"]
    for place, lag in told.get("lags", {}).items():
        topic, _, partition = place.rpartition("/")
        yield LAG, {**own, "topic": topic, "partition": partition}, lag
    if told["watermark"]:
        yield WATERMARK, own, datetime.fromisoformat(told["watermark"]).timestamp()
    for rule, count in told["broken"].items():
        yield BROKEN, {**own, "expectation": rule}, count
    for topic, count in told["rejected"].items():
        yield REJECTED, {**own, "topic": topic}, count


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsServer:
    """Serves what it was shown last, from a thread of its own; raises OSError where the port is taken."""

    def __init__(self, pipeline: str, *, host: str, port: int) -> None:
        self._pipeline = pipeline
        self._page = exposition(pipeline, {}).encode()
        self._server = ThreadingHTTPServer((host, port), self._handler())
        self.address = f"http://{host}:{self._server.server_port}{PATH}"
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def show(self, queries: Sequence[Running]) -> None:
        self._page = exposition(self._pipeline, {one.job.sink.name: one.as_json() for one in queries}).encode()

    def finish(self, queries: Sequence[Running]) -> None:
        self.show(queries)
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self._latest

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.partition("?")[0] == PATH
                body = page() if found else f"see {PATH}\n".encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """The terminal is for the pipeline."""

        return Handler

    def _latest(self) -> bytes:
        return self._page
