"""A collector for tests: takes OTLP over HTTP as OpenTelemetry's own messages. The real one has a test of its own."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

WAIT_S = 30.0


class Collector:
    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.status = 200
        self.url = ""

    def resources(self) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
        """Attributes of each resource, and its metrics by their names."""
        for request in [*self.requests]:
            for each in request.resource_metrics:
                attributes = {one.key: one.value.string_value for one in each.resource.attributes}
                yield attributes, {metric.name: metric for scope in each.scope_metrics for metric in scope.metrics}

    def until(self, is_there: Callable[[], Any]) -> Any:
        deadline_s = time.monotonic() + WAIT_S
        while not (found := is_there()):
            assert time.monotonic() < deadline_s, f"{len(self.requests)} requests came"
            time.sleep(0.02)
        return found

    def metric(self, name: str, **attributes: str) -> Any:
        """The newest of this name, of a resource with these attributes."""

        def newest() -> Any:
            found = [
                metrics[name]
                for known, metrics in self.resources()
                if attributes.items() <= known.items() and name in metrics
            ]
            return found[-1] if found else None

        return self.until(newest)


@contextmanager
def running_collector() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if collector.status == 200:
                collector.headers.append({key.lower(): value for key, value in self.headers.items()})
                collector.paths.append(self.path)
                collector.requests.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
