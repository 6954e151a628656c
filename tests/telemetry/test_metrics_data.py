"""Our reader of MetricsData beside OpenTelemetry's own library."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from moldau.telemetry.metrics_data import AttributeValue, HistogramValue, Metric, MetricsDataReader, Point
from moldau.telemetry.protobuf import InvalidProtobuf
from tests.telemetry.metrics import attribute, pushed

ELEMENTS_MAX = 1_000


def read(data: bytes, elements_max: int = ELEMENTS_MAX) -> list[Metric]:
    return [metric for each in MetricsDataReader(elements_max).read(data) for metric in each.metrics]


numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
attributes = st.dictionaries(
    st.text(max_size=20),
    st.one_of(st.text(max_size=20), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)),
    max_size=3,
)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["gauge", "sum"]), st.text(max_size=20), numbers, attributes, attributes, st.sampled_from([1, 2])
)
def test_numbers_and_attributes_are_read_as_the_library_wrote_them(
    kind: str,
    name: str,
    value: float,
    own: dict[str, AttributeValue],
    resource: dict[str, AttributeValue],
    temporality: int,
) -> None:
    data = pushed((kind, name, value), time_ns=7, temporality=temporality, of_resource=resource, of_points=own)
    (found,) = MetricsDataReader(ELEMENTS_MAX).read(data)
    (metric,) = found.metrics
    assert (metric.name, metric.kind, dict(found.attributes)) == (name, kind, resource)
    assert metric.points == [Point(own, 0, 7, value)]
    assert metric.is_monotonic == (kind == "sum")
    assert metric.is_delta == (kind == "sum" and temporality == 1)


def test_a_histogram() -> None:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="h", unit="ms", description="d")
    metric.histogram.aggregation_temporality = 1
    point = metric.histogram.data_points.add(count=6, sum=9.5, bucket_counts=[1, 2, 3], explicit_bounds=[1.0, 5.0])
    point.start_time_unix_nano, point.time_unix_nano = 3, 4
    (found,) = read(data.SerializeToString())
    assert (found.unit, found.description, found.is_delta) == ("ms", "d", True)
    assert found.points == [Point({}, 3, 4, HistogramValue(6, 9.5, (1, 2, 3), (1.0, 5.0)))]


def test_what_is_not_shown_is_counted_and_left_out() -> None:
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    scope.metrics.add(name="s").summary.data_points.add(count=1)
    scope.metrics.add(name="e").exponential_histogram.data_points.add(count=1)
    point = scope.metrics.add(name="g").gauge.data_points.add(as_int=1)
    point.attributes.append(KeyValue(key="list", value=AnyValue(array_value=ArrayValue())))
    point.attributes.append(attribute("text", "x"))
    scope.metrics.add(name="none").gauge.data_points.add(flags=1)
    reader = MetricsDataReader(ELEMENTS_MAX)
    (found,) = reader.read(data.SerializeToString())
    assert reader.left_out == 2
    assert [len(each.points) for each in found.metrics] == [0, 0, 1, 0]
    assert found.metrics[2].points[0].attributes == {"text": "x"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a", "cut off"),
        (b"\x0a\x05ab", "5 bytes, where 2 are left"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "where 0 are left"),
        (b"\xff" * 11, "longer than ten bytes"),
        (b"\x02\x00", "number 0"),
        (b"\x0b\x0c", "wire type 3"),
        (b"\x0a\x06\x12\x04\x12\x02\x0a\xff", "cut off"),
        (b"\x0a\x08\x12\x06\x12\x04\x0a\x02\xff\xfe", "not UTF-8"),
    ],
)
def test_hostile_bytes(data: bytes, why: str) -> None:
    with pytest.raises(InvalidProtobuf, match=why):
        read(data)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_bytes_are_read_or_refused(noise: bytes, at: int) -> None:
    whole = pushed(("gauge", "a", 1), ("sum", "b", 2.5), of_resource={"r": "x"}, of_points={"p": 1})
    for data in (noise, whole[:at], whole[:at] + noise + whole[at:]):
        with contextlib.suppress(InvalidProtobuf):
            read(data)


def test_too_many_elements_are_refused_before_they_are_made() -> None:
    data = pushed(*(("gauge", "a", 1) for _ in range(100)))
    assert len(read(data, 201)) == 100
    with pytest.raises(InvalidProtobuf, match="too many"):
        read(data, 200)


def chosen(*kinds: str) -> Metric:
    """One metric with a point of each of these kinds, in this order, which no library writes."""
    raw = b""
    for kind in kinds:
        data = MetricsData()
        metric = data.resource_metrics.add().scope_metrics.add().metrics.add()
        point = getattr(metric, kind).data_points.add()
        if kind in ("gauge", "sum"):
            point.as_int = 7
        raw += metric.SerializeToString()
    scope = b"\x12" + bytes([len(raw)]) + raw
    resource = b"\x12" + bytes([len(scope)]) + scope
    (found,) = read(b"\x0a" + bytes([len(resource)]) + resource)
    return found


@pytest.mark.parametrize(
    ("kinds", "kind", "points"),
    [
        (("histogram", "gauge"), "gauge", [Point({}, 0, 0, 7)]),
        (("gauge", "histogram"), "histogram", [Point({}, 0, 0, HistogramValue(0, None, (), ()))]),
        (("gauge", "summary"), None, []),
        (("gauge", "gauge"), "gauge", [Point({}, 0, 0, 7), Point({}, 0, 0, 7)]),
    ],
)
def test_of_several_kinds_of_points_the_last_counts(kinds: tuple[str, ...], kind: str | None, points: object) -> None:
    found = chosen(*kinds)
    assert (found.kind, found.points) == (kind, points)
