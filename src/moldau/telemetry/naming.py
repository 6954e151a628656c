"""Names and labels of OpenTelemetry as Prometheus has them, by OpenTelemetry's own rules for that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from moldau.core.exposition import escaped
from moldau.telemetry.metrics_data import Attributes, AttributeValue

_NO_NAME = re.compile(r"[^a-zA-Z0-9_:]+")
_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]+")
_TOTAL = "_total"
_OF_POINTS = frozenset({"le", "quantile"})  # of buckets and quantiles: Prometheus drops a whole page for a second one
_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours",
        "d": "days", "By": "bytes", "KiBy": "kibibytes", "MiBy": "mebibytes", "GiBy": "gibibytes", "%": "percent",
        "By/s": "bytes_per_second",
    }
)  # fmt: skip
"""What is not here (`1`, or an annotation in braces) is no part of a name."""


def metric_name(name: str, unit: str, *, is_counter: bool) -> str:
    """`org.apache.kafka.consumer.poll.total` is `org_apache_kafka_consumer_poll_total`."""
    parts = [part for part in _NO_NAME.sub("_", name).split("_") if part]
    shown = _UNITS.get(unit)
    if is_counter and parts and parts[-1] == "total":
        parts.pop()
    if shown is not None and not "_".join(parts).endswith(shown):
        parts.append(shown)
    found = "_".join(parts) + (_TOTAL if is_counter else "")
    return f"_{found}" if not found or found[0].isdigit() else found


def label_name(key: str) -> str:
    found = _NO_LABEL.sub("_", key)
    # Two underscores are Prometheus' own.
    is_taken = not found or found[0].isdigit() or found.startswith("_") or found in _OF_POINTS
    return f"key_{found.lstrip('_')}" if is_taken else found


def label_value(value: AttributeValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def labels_of(*several: Attributes) -> dict[str, str]:
    """Of two attributes that become one label, the later one counts."""
    return {label_name(key): label_value(value) for each in several for key, value in each.items()}


def rendered(labels: Mapping[str, str]) -> str:
    """Without the braces, sorted: the same labels are the same text."""
    return ",".join([f'{key}="{escaped(value)}"' for key, value in sorted(labels.items())])
