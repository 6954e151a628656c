"""/metrics, /health and /ready of a broker, and metrics that are sent; imported only where either is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from time import monotonic

import moldau
from moldau.broker.context import Services
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.api_versions import announced
from moldau.broker.handlers.telemetry import TELEMETRY
from moldau.broker.metrics.collecting import Collector
from moldau.broker.metrics.health import Condition
from moldau.broker.metrics.http.server import HttpServer
from moldau.broker.metrics.metering import Metering
from moldau.broker.metrics.pages import Pages
from moldau.broker.metrics.writers.broker import write_broker
from moldau.broker.metrics.writers.client_telemetry import write_client_telemetry, write_receiver
from moldau.broker.metrics.writers.connections import write_connections
from moldau.broker.metrics.writers.controller import write_controller
from moldau.broker.metrics.writers.coordinators import write_groups, write_transactions
from moldau.broker.metrics.writers.directories import DirectoriesWriter
from moldau.broker.metrics.writers.event_loop import EventLoopWriter
from moldau.broker.metrics.writers.partitions import write_partitions
from moldau.broker.metrics.writers.process import write_process
from moldau.broker.metrics.writers.requests import RequestsWriter
from moldau.broker.metrics.writers.topics import write_topics
from moldau.broker.telemetry.receiver import TelemetryReceiver
from moldau.core.config.broker import BrokerConfig


class Metrics:
    """In the order of a start: the address is taken, probes are answered, and then there are services to tell of."""

    def __init__(self, config: BrokerConfig) -> None:
        self.condition = Condition(config.node_id, version=moldau.__version__)
        self._pages = Pages(self.condition)
        self._server: HttpServer | None = None
        address = config.metrics_listener
        if address is None:
            return
        self._server = HttpServer()
        try:
            self._server.bind(address.host, address.port)
        except OSError as wrong:
            wrong.filename = f"http://{address}"
            raise

    @property
    def url(self) -> str | None:
        """None where they are only sent."""
        return None if self._server is None else f"{self._server.url}/metrics"

    def start(self, running: AsyncExitStack) -> None:
        if self._server is not None:
            running.push_async_callback(self._server.close)
            self._server.start(self._pages.answer)

    def tell_of(self, services: Services, running: AsyncExitStack) -> None:
        self.condition.services = services
        collector = self._pages.collector = Collector(services.long_work)
        running.push_async_callback(collector.stop)
        traffic = services.replication.traffic
        assert traffic is not None, "partitions count where there are metrics"
        metering = services.metering = Metering(services, traffic)
        requests = RequestsWriter(metering, services.long_work)
        receiver = receive_telemetry(services, running)
        clients = partial(write_client_telemetry, receiver, services)
        collector.writers += [
            partial(write_broker, self.condition, services),
            write_process,
            EventLoopWriter(),
            partial(write_topics, metering, services.long_work),
            lambda out: requests(out, monotonic()),
            partial(write_connections, services),
            partial(write_partitions, services),
            partial(write_controller, services),
            partial(write_groups, services),
            partial(write_transactions, services),
            DirectoriesWriter(services),
            partial(write_receiver, receiver),
            clients,
        ]
        services.metric_writers = collector.writers
        if services.config.otlp_endpoint is not None:
            from moldau.node.exporting import export

            # What clients push goes to the collector as it comes, and not in our pages once more.
            export(services, lambda: [each for each in collector.writers if each is not clients], running)

    def serving(self, running: AsyncExitStack) -> str | None:
        """Clients are answered, until the broker begins to stop. Gives where metrics are read."""
        self.condition.is_serving = True
        running.callback(self._stopping)
        return self.url

    def _stopping(self) -> None:
        self.condition.is_stopping = True


def receive_telemetry(services: Services, running: AsyncExitStack) -> TelemetryReceiver:
    """Clients' own metrics: there is a place for them where there is one for the broker's."""
    bytes_max = services.config.int("telemetry.max.bytes")
    # A thread of their own: large answers to others must not wait behind what clients push.
    reading = ThreadPoolExecutor(1, thread_name_prefix="moldau-telemetry")
    running.callback(reading.shutdown, cancel_futures=True)
    services.telemetry = TelemetryReceiver(bytes_max, reading, services.clock.elapsed_ms)
    services.api_versions = announced(TABLE + TELEMETRY)
    return services.telemetry


def open_metrics(config: BrokerConfig, running: AsyncExitStack) -> Metrics | None:
    """None where nobody can read them: they are only to be sent, and what sends them is not installed."""
    if config.otlp_endpoint is not None:
        from moldau.node.exporting import check_installed

        if not check_installed(config.otlp_endpoint) and config.metrics_listener is None:
            return None
    metrics = Metrics(config)
    metrics.start(running)
    return metrics
