"""The exporting process: reads frames, sends what they hold to the collector, and says on its output how that went.

Where to, with which headers and which certificates is in the OTEL_EXPORTER_OTLP_* variables, as OpenTelemetry's own
exporter reads them. `python -m moldau.telemetry.export.process RESOURCE`, which is JSON.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from moldau.core.clock import SystemClock
from moldau.telemetry.export.frames import PAGE, PUSH, SEND, pushed, read_frame
from moldau.telemetry.export.page import metrics_of
from moldau.telemetry.export.pushes import resource_metrics_of

DONE = "sent"


class LastWords(logging.Handler):
    """What the exporter logged last: why it failed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = " ".join(record.getMessage().split())


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):  # a terminal, or a service's end, tells all; our input's end ends us
        signal.signal(each, signal.SIG_IGN)
    words = LastWords()
    logging.basicConfig(handlers=[words], level=logging.WARNING)
    told = json.loads(sys.argv[1])
    if os.environ.get("OTEL_SERVICE_NAME"):
        told.pop(SERVICE_NAME, None)
    resource = Resource.create(told)
    exporter = OTLPMetricExporter()
    waiting: list[ResourceMetrics] = []
    while (found := read_frame(sys.stdin.buffer)) is not None:
        kind, payload = found
        if kind == PAGE:
            metrics = metrics_of(payload.decode(), now_ns=SystemClock().now_ms() * 1_000_000)
            waiting.append(ResourceMetrics(resource, [ScopeMetrics(InstrumentationScope("moldau"), metrics, "")], ""))
        elif kind == PUSH:
            waiting += resource_metrics_of(*pushed(payload))
        elif kind == SEND:
            words.text = ""
            is_sent = exporter.export(MetricsData(waiting)) is MetricExportResult.SUCCESS
            waiting = []
            sys.stdout.write(f"{DONE if is_sent else words.text or 'the collector did not take them'}\n")
            sys.stdout.flush()
    exporter.shutdown()


if __name__ == "__main__":
    main()
