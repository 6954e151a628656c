"""Metrics of a broker, and those that clients pushed to it, on their way to an OpenTelemetry collector."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

import moldau
from moldau.broker.context import Services
from moldau.broker.metrics.collecting import Collector, Writer
from moldau.broker.telemetry.samples import client_labels
from moldau.broker.telemetry.subscriptions import Client
from moldau.core.config.monitoring import OTLP_ENDPOINT, OTLP_INTERVAL_MS
from moldau.core.exposition import Exposition
from moldau.node.running import StartFailed
from moldau.telemetry.export.exporter import ENDPOINT, METRICS_ENDPOINT, MISSING, Destination, Exporter, is_installed

LOGGER = logging.getLogger(__name__)


def check_installed(endpoint: str) -> bool:
    """A variable may be there for every program of a machine, and keeps none from its start; a key is this broker's."""
    if is_installed():
        return True
    if endpoint not in (os.environ.get(ENDPOINT), os.environ.get(METRICS_ENDPOINT)):
        raise StartFailed(f"{OTLP_ENDPOINT}: {MISSING}")
    LOGGER.warning("metrics are not sent to %s of the environment: %s", Destination(endpoint, 0), MISSING)
    return False


def export(services: Services, writers: Callable[[], Sequence[Writer]], running: AsyncExitStack) -> None:
    endpoint = services.config.otlp_endpoint
    assert endpoint is not None, "somebody said where to"
    if not is_installed():
        return
    destination = Destination(endpoint, services.config.int(OTLP_INTERVAL_MS) / 1_000)
    cluster_id, broker_id = services.directories.cluster_id, str(services.broker_id)
    where = {"kafka.cluster.id": cluster_id, "kafka.broker.id": broker_id}
    whose = {"service.name": "moldau", "service.instance.id": f"{cluster_id}/{broker_id}"}
    exporter = Exporter(destination, {**where, **whose, "service.version": moldau.__version__})
    assert services.telemetry is not None, "it is there where metrics are"
    assert services.metric_writers is not None, "they are there where metrics are"
    services.telemetry.send_on = partial(send_on, exporter, where)
    services.metric_writers.append(exporter.write)
    LOGGER.info("metrics are sent to %s every %g s", destination, destination.interval_s)
    exporter.start()
    running.push_async_callback(asyncio.to_thread, exporter.stop)
    collector = Collector(services.long_work)

    async def write(out: Exposition) -> None:
        for each in writers():
            await collector.add(each, out)

    collector.writers.append(write)
    task = asyncio.get_running_loop().create_task(send_pages(collector, exporter), name="otel-pages")
    running.push_async_callback(collector.stop)
    running.callback(task.cancel)


async def send_pages(collector: Collector, exporter: Exporter) -> None:
    while True:
        await asyncio.sleep(exporter.destination.interval_s)
        exporter.offer_page(b"".join(await collector.page()))


def send_on(exporter: Exporter, where: dict[str, str], client: Client, data: bytes) -> None:
    exporter.offer_push({**client_labels(client), **where, "client_source_address": client.address}, data)
