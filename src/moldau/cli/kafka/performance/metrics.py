"""librdkafka's own numbers at the end of a test, in the form in which Apache Kafka's tools print theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

INTERVAL_MS = 200  # librdkafka gives them from time to time only; the last are printed


class Metrics:
    def __init__(self) -> None:
        self._last = "{}"

    @property
    def settings(self) -> dict[str, object]:
        return {"statistics.interval.ms": INTERVAL_MS, "stats_cb": self._keep}

    def _keep(self, text: str) -> None:
        self._last = text

    def print_all(self) -> None:
        found = sorted(_flat("", json.loads(self._last)))
        width = max((len(name) for name, _ in found), default=0)
        print(f"\n{'Metric Name':<{width}}   Value")
        for name, value in found:
            print(f"{name:<{width}} : {f'{value:.3f}' if isinstance(value, float) else value}")


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _flat(f"{prefix}:{name}" if prefix else str(name), each)
    elif isinstance(value, int | float | str):
        yield prefix, value
