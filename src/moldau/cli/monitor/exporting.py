"""What the monitor tells, sent to an OpenTelemetry collector that its file or the environment names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import moldau
from moldau.cli.failures import CommandFailed, UsageError
from moldau.core.config.monitoring import EXPECTED_URL, is_http_url
from moldau.telemetry.export.exporter import (
    ENDPOINT,
    METRICS_ENDPOINT,
    MISSING,
    Destination,
    Exporter,
    PeriodicExport,
    is_installed,
)

if TYPE_CHECKING:
    from moldau.monitor.service import Monitor
    from moldau.monitor.settings import Settings

LOGGER = logging.getLogger(__name__)

INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"


def destination_of(settings: Settings, environment: Mapping[str, str]) -> Destination | None:
    """The file wins over the environment; None where neither names a collector, or none can be reached by it."""
    if settings.otlp_endpoint is not None:
        if not is_installed():
            raise CommandFailed(f"otlp-endpoint: {MISSING}")
        return Destination(settings.otlp_endpoint, settings.otlp_interval_s)
    variable = METRICS_ENDPOINT if environment.get(METRICS_ENDPOINT) else ENDPOINT
    endpoint = environment.get(variable)
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if not endpoint or is_disabled or environment.get("OTEL_METRICS_EXPORTER") == "none":
        return None
    if not is_http_url(endpoint):
        raise UsageError(f"environment variable {variable}: expected {EXPECTED_URL}")
    interval_ms = environment.get(INTERVAL, "")
    interval_s = int(interval_ms) / 1_000 if interval_ms.isdecimal() and int(interval_ms) else settings.otlp_interval_s
    found = Destination(endpoint, interval_s)
    if is_installed():
        return found
    LOGGER.warning("metrics are not sent to %s of the environment: %s", found, MISSING)
    return None


def export_of(monitor: Monitor, environment: Mapping[str, str]) -> PeriodicExport | None:
    destination = destination_of(monitor.settings, environment)
    if destination is None:
        return None
    from moldau.monitor.serving.metrics.pages import Pages

    pages = Pages(monitor)
    LOGGER.info("metrics are sent to %s every %g s", destination, destination.interval_s)
    exporter = Exporter(destination, {"service.name": "moldau-monitor", "service.version": moldau.__version__})
    return PeriodicExport(exporter, lambda: b"".join(pages.text()))
