"""VerifiableProducer and VerifiableConsumer as processes; they print a line of JSON for each thing they do."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests import apache_kafka
from tests.suites.tools import VERIFIABLE_CONSUMER, VERIFIABLE_PRODUCER

SETTLE_S_MAX = 60.0
STOP_S_MAX = 20.0


def produce(bootstrap: str, topic: str, count: int, *options: str) -> list[dict[str, Any]]:
    """What became of each record; the tool itself compares what it sent with what was acknowledged."""
    wanted = ("--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", str(count))
    # It says its last from a hook of the JVM's end, so it can't share one.
    return judged(apache_kafka.tool(VERIFIABLE_PRODUCER, *wanted, *options), count)


def judged(done: subprocess.CompletedProcess[str], count: int) -> list[dict[str, Any]]:
    """The same, of what such a tool printed."""
    told = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = Counter(event["name"] for event in told)
    expected = {"startup_complete": 1, "producer_send_success": count, "shutdown_complete": 1, "tool_data": 1}
    assert kinds == expected, done.stderr
    (summary,) = (event for event in told if event["name"] == "tool_data")
    assert (summary["sent"], summary["acked"]) == (count, count)
    return [event for event in told if event["name"] == "producer_send_success"]


class Member:
    """One member; its state is read from what it has printed so far."""

    def __init__(self, bootstrap: str, *options: str) -> None:
        self.partitions: set[int] = set()
        self.assignments = 0
        self.consumed = 0
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            self._command("--bootstrap-server", bootstrap, *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _command(self, *options: str) -> list[str]:
        return apache_kafka.java_command(VERIFIABLE_CONSUMER, *options)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._follow(json.loads(line))

    def _follow(self, event: dict[str, Any]) -> None:
        match event["name"]:
            case "partitions_assigned":
                self.partitions = self.partitions | {each["partition"] for each in event["partitions"]}
                self.assignments += 1
            case "partitions_revoked":
                self.partitions = self.partitions - {each["partition"] for each in event["partitions"]}
            case "records_consumed":
                self.consumed += event["count"]

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + SETTLE_S_MAX
        while not condition():
            assert self._process.poll() is None, f"ended before {what}: {self._error_text()}"
            assert time.monotonic() < deadline_s, f"no {what}: {self.partitions}, {self.consumed} consumed"
            time.sleep(0.02)

    def stop(self) -> None:
        """End it as SIGTERM does: it commits and, unless it is static, leaves its group."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        finally:
            self._process.kill()
            self._process.wait()
        self._reader.join(STOP_S_MAX)

    def _error_text(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._errors.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
