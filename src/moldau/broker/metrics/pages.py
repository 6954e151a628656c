"""What is answered to which path."""

from __future__ import annotations

import json
from typing import Any

from moldau.broker.metrics.collecting import Collector
from moldau.broker.metrics.health import Condition
from moldau.broker.metrics.http.connection import TEXT, Answer
from moldau.core.exposition import CONTENT_TYPE

JSON = "application/json"
INDEX = b"/metrics  for Prometheus\n/health   whether this broker is well\n/ready    whether it serves clients\n"
GOOD = frozenset({"healthy", "ready"})


class Pages:
    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.collector: Collector | None = None
        """None until there is something to collect from."""

    async def answer(self, path: str) -> Answer:
        if path == "/metrics":
            return await self._metrics()
        if path == "/health":
            return told(self.condition.health())
        if path == "/ready":
            return told(self.condition.readiness())
        if path == "/":
            return Answer(200, TEXT, [INDEX])
        return Answer(404, TEXT, [b"there is nothing here; try /metrics, /health or /ready\n"])

    async def _metrics(self) -> Answer:
        if self.collector is None:
            return Answer(503, TEXT, [b"this broker starts; it has no metrics yet\n"])
        return Answer(200, CONTENT_TYPE, await self.collector.page())


def told(condition: dict[str, Any]) -> Answer:
    status = 200 if condition["status"] in GOOD else 503
    return Answer(status, JSON, [json.dumps(condition).encode() + b"\n"])
