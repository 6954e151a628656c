"""MetricsData for tests, made by OpenTelemetry's own library."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

CUMULATIVE = 2


def attribute(key: str, value: Any) -> KeyValue:
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    return KeyValue(key=key, value=AnyValue(**{kinds[type(value)]: value}))


def pushed(
    *metrics: tuple[str, str, float],
    time_ns: int = 1,
    temporality: int = 1,
    of_resource: dict[str, Any] | None = None,
    of_points: dict[str, Any] | None = None,
) -> bytes:
    """Metrics as (kind, name, value), where the kind is `gauge` or `sum`; sums are monotonic."""
    data = MetricsData()
    resource = data.resource_metrics.add()
    resource.resource.attributes.extend(attribute(*each) for each in (of_resource or {}).items())
    scope = resource.scope_metrics.add()
    for kind, name, value in metrics:
        metric = scope.metrics.add(name=name)
        holder = getattr(metric, kind)
        if kind == "sum":
            holder.is_monotonic, holder.aggregation_temporality = True, temporality
        point = holder.data_points.add(time_unix_nano=time_ns)
        if isinstance(value, float):
            point.as_double = value
        else:
            point.as_int = value
        point.attributes.extend(attribute(*each) for each in (of_points or {}).items())
    return bytes(data.SerializeToString())
