"""What clients pushed, as they pushed it, as the metrics of OpenTelemetry's SDK: deltas stay deltas."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from moldau.core.limits import TELEMETRY_ELEMENTS_MAX
from moldau.telemetry import metrics_data
from moldau.telemetry.metrics_data import HistogramValue, MetricsDataReader, Point

SCOPE = "org.apache.kafka"


def resource_metrics_of(known: Mapping[str, str], data: bytes) -> list[ResourceMetrics]:
    """`known` is what the broker says of the client; it stands beside what the client says of itself, and wins."""
    found = []
    for each in MetricsDataReader(TELEMETRY_ELEMENTS_MAX).read(data):
        metrics = [metric for one in each.metrics if (metric := _metric(one)) is not None]
        scope = ScopeMetrics(InstrumentationScope(SCOPE), metrics, "")
        found.append(ResourceMetrics(Resource({**each.attributes, **known}), [scope], ""))
    return found


def _metric(one: metrics_data.Metric) -> Metric | None:
    temporality = AggregationTemporality.DELTA if one.is_delta else AggregationTemporality.CUMULATIVE
    data: Gauge | Sum | Histogram
    if one.kind == metrics_data.HISTOGRAM:
        data = Histogram([_histogram(each) for each in one.points], temporality)
    elif one.kind == metrics_data.SUM:
        data = Sum([_number(each) for each in one.points], temporality, one.is_monotonic)
    elif one.kind == metrics_data.GAUGE:
        data = Gauge([_number(each) for each in one.points])
    else:
        return None
    return Metric(one.name, one.description, one.unit, data)


def _number(point: Point) -> NumberDataPoint:
    assert not isinstance(point.value, HistogramValue), "only histograms have some"
    return NumberDataPoint(point.attributes, point.start_ns, point.time_ns, point.value)


def _histogram(point: Point) -> HistogramDataPoint:
    value = point.value
    assert isinstance(value, HistogramValue), "each point of a histogram is one"
    unknown: float = None  # type: ignore[assignment]  # the exporter leaves it out
    times = point.start_ns, point.time_ns
    return HistogramDataPoint(
        point.attributes,
        *times,
        value.count,
        value.sum or 0.0,
        value.bucket_counts,
        value.bounds,
        unknown,
        unknown,
    )
