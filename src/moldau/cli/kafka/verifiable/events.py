"""One line of JSON for each thing that happens, in the form of Apache Kafka's verifiable clients."""

from __future__ import annotations

import json
import signal
from types import FrameType

from moldau.core.clock import SystemClock


def tell(name: str, **fields: object) -> None:
    """At once: whoever watches waits for the line."""
    event = {"timestamp": SystemClock().now_ms(), "name": name, **fields}
    print(json.dumps(event, ensure_ascii=False, separators=(",", ":")), flush=True)


class StopRequest:
    """Set by SIGTERM and SIGINT: the tool ends what it is at, and says so."""

    def __init__(self) -> None:
        self.is_set = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.is_set = True
