"""The side of the exporting process that others see: a queue with a limit, and a thread that hands it over."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Condition, Thread
from urllib.parse import urlsplit

from moldau.core.exposition import COUNTER, Exposition
from moldau.core.limits import TELEMETRY_EXPORT_BYTES_MAX
from moldau.core.repeated_line import RepeatedLine
from moldau.telemetry.export.frames import PAGE, SEND, frame, push_frame

LOGGER = logging.getLogger(__name__)

ENDPOINT, METRICS_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
SENT = "sent"
RESTART_S = 5.0
STOP_S = 1.0  # for what waits to be taken by the collector
MISSING = "it needs: pip install 'moldau[otel]'"


def is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class Destination:
    endpoint: str
    """Without the path of metrics, which is added; or, from the environment, with it."""
    interval_s: float

    def __str__(self) -> str:
        """Without a password in it."""
        parts = urlsplit(self.endpoint)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def child_environment(destination: Destination, environment: Mapping[str, str]) -> dict[str, str]:
    """What a file or a command line says wins over the environment."""
    if destination.endpoint in (environment.get(ENDPOINT), environment.get(METRICS_ENDPOINT)):
        return dict(environment)
    kept = {name: value for name, value in environment.items() if name != METRICS_ENDPOINT}
    return {**kept, ENDPOINT: destination.endpoint}


class Exporter:
    """Whatever is offered returns at once; what waits longer than there is room for it is dropped, and counted."""

    def __init__(self, destination: Destination, resource: Mapping[str, str]) -> None:
        self.destination = destination
        self.sent = self.failed = self.dropped = 0
        self._resource = dict(resource)
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = Condition()
        self._is_stopping = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._run, name="otel-export", daemon=True)
        self._failure = RepeatedLine(LOGGER, logging.WARNING)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What waits is sent on if the collector takes it at once."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(STOP_S)
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def offer_page(self, page: bytes) -> None:
        self._offer(frame(PAGE, page))

    def offer_push(self, attributes: Mapping[str, str], data: bytes) -> None:
        self._offer(push_frame(attributes, data))

    def write(self, out: Exposition) -> None:
        name = "moldau_otel_exports_total"
        help_text = "Requests with metrics to the OpenTelemetry collector."
        out.add(name, help_text, {"outcome": SENT}, self.sent, COUNTER)
        out.add(name, help_text, {"outcome": "failed"}, self.failed, COUNTER)
        help_text = "Pages and pushes that were not sent to the collector, for too many waited."
        out.add("moldau_otel_dropped_total", help_text, {}, self.dropped, COUNTER)

    def _offer(self, one: bytes) -> None:
        with self._changed:
            if self._waiting and self._waiting_bytes + len(one) > TELEMETRY_EXPORT_BYTES_MAX:
                self.dropped += 1
                return
            self._waiting.append(one)
            self._waiting_bytes += len(one)
            self._changed.notify()

    def _take(self) -> list[bytes]:
        """All that waits; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_stopping)
            found = [*self._waiting]
            self._waiting.clear()
            self._waiting_bytes = 0
            return found

    def _run(self) -> None:
        while frames := self._take():
            try:
                outcome = self._sent(frames)
            except OSError as wrong:
                outcome = f"the exporting process ended: {wrong}"
            if outcome == SENT:
                self.sent += 1
                continue
            self.failed += 1
            if self._is_stopping:
                break
            self._failure.say(f"metrics were not sent to {self.destination}: {outcome}")
            if self._process is not None and self._process.poll() is not None:
                self._end()
                with self._changed:
                    self._changed.wait_for(lambda: self._is_stopping, RESTART_S)
        self._end()

    def _sent(self, frames: list[bytes]) -> str:
        """One batch, and how it went."""
        process = self._process = self._process or self._begun()
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        for each in (*frames, frame(SEND)):
            process.stdin.write(each)
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            process.wait()
            return f"the exporting process ended with exit code {process.returncode}"
        return line.decode(errors="replace").strip()

    def _begun(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "moldau.telemetry.export.process", json.dumps(self._resource)]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(self.destination, os.environ),
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None, "both are pipes"
            try:
                pipe.close()
            except OSError:  # it ended before it read all
                LOGGER.debug("the exporting process was gone before its input was")
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


Page = Callable[[], bytes]


class PeriodicExport:
    """For programs of threads: a page each interval."""

    def __init__(self, exporter: Exporter, page: Page) -> None:
        self._exporter, self._page = exporter, page
        self._stopping = Condition()
        self._is_stopping = False
        self._thread = Thread(target=self._run, name="otel-pages", daemon=True)
        self._failure = RepeatedLine(LOGGER, logging.ERROR)

    def start(self) -> None:
        self._exporter.start()
        self._thread.start()

    def stop(self) -> None:
        with self._stopping:
            self._is_stopping = True
            self._stopping.notify()
        self._thread.join(STOP_S)
        self._exporter.stop()

    def _run(self) -> None:
        while True:
            with self._stopping:
                if self._stopping.wait_for(lambda: self._is_stopping, self._exporter.destination.interval_s):
                    return
            try:
                self._exporter.offer_page(self._page())
            except Exception as wrong:
                self._failure.say(f"metrics are not exported: {wrong!r}", exc_info=wrong)
