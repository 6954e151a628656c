"""Members of a group, each a process on a client library of its own, and what they tell.

A member gets its options as one JSON argument, reads and commits until its input ends, and then leaves. It tells a JSON
object per line, each with `event` and `at_us`, the time of the machine's clock:

    assigned, revoked, lost   partitions: [[topic, index], ...]; what is added or taken, told from the
                              library's callback; `revoked` after the last commit
    read                      spans: [[topic, index, first offset, last offset], ...]
    committed                 offsets: [[topic, index, offset], ...], of all that was read since the last commit
    failed                    a commit of the same was refused for good, with a message

The custom assignor is `priority` in every language: it gives everything to the member with the highest `priority`, a
number that members send as the user data of their subscription.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.clients import toolchains
from tests.clients.drivers import ROOT
from tests.rebalance import ownership
from tests.rebalance.ownership import Event, Partition

LEAVE_S_MAX = 30.0
MEMBERS: dict[str, Callable[[], list[str]]] = {
    "java": toolchains.java_member,
    "confluent": lambda: [sys.executable, "-m", "tests.clients.python.confluent_member"],
    "franz-go": toolchains.go_member,
    "aiokafka": lambda: [sys.executable, "-m", "tests.clients.python.aiokafka_member"],
    "kafkajs": toolchains.javascript_member,
}


class Member:
    """A running member; `changed` is notified with every line that it tells."""

    def __init__(self, client: str, options: dict[str, Any], changed: threading.Condition) -> None:
        self.name: str = options["name"]
        self.client = client
        self.options = options
        self.events: list[Event] = []
        self.changed = changed
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*MEMBERS[client](), json.dumps(options)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            content = json.loads(line)
            self._add(Event(content.pop("at_us"), self.name, content.pop("event"), content))
        self.process.wait()
        self._add(Event(time.time_ns() // 1_000, self.name, "ended", {}))

    def _add(self, event: Event) -> None:
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()

    @property
    def owned(self) -> frozenset[Partition]:
        return ownership.owned(self.events)

    @property
    def has_ended(self) -> bool:
        return bool(self.events) and self.events[-1].kind == "ended"

    @property
    def has_failed(self) -> bool:
        return self.has_ended and self.process.returncode not in (0, -signal.SIGKILL)

    @property
    def changes(self) -> list[Event]:
        """What happened to its partitions so far."""
        return [event for event in self.events if event.kind in ("assigned", "revoked", "lost") and event.partitions]

    def leave(self) -> None:
        """End its input, so that it closes its consumer, and wait until it is gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._wait_for_end()
        assert self.process.returncode == 0, f"{self.name} failed: {self.error_text()}"

    def kill(self) -> None:
        """As a crash: it leaves no word and no group."""
        self.process.kill()
        self._wait_for_end()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._wait_for_end()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()

    def _wait_for_end(self) -> None:
        self.listener.join(LEAVE_S_MAX)
        assert not self.listener.is_alive(), f"{self.name} did not end: {self.error_text()}"

    def error_text(self) -> str:
        self.errors.seek(0)
        return self.errors.read()[-3_000:].decode(errors="replace")
