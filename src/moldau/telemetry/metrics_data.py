"""OpenTelemetry's MetricsData as clients push it: gauges, sums and histograms with explicit bounds.

Others of its points (exponential histograms and summaries, which no client of Kafka pushes) are counted and left out,
and so are attributes that are lists or maps. Numbers of fields are those of `opentelemetry/proto/metrics/v1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from moldau.telemetry.protobuf import (
    BYTES,
    FIXED64,
    VARINT,
    Field,
    InvalidProtobuf,
    double,
    doubles,
    fields,
    fixed64,
    sfixed64,
    signed,
    string,
    unsigned,
)

GAUGE, SUM, HISTOGRAM = "gauge", "sum", "histogram"
DELTA = 1  # AGGREGATION_TEMPORALITY_DELTA
NO_VALUE = 1  # DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK

AttributeValue: TypeAlias = str | int | float | bool
Attributes: TypeAlias = Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class HistogramValue:
    count: int
    sum: float | None
    bucket_counts: tuple[int, ...]
    bounds: tuple[float, ...]


class Point(NamedTuple):
    attributes: Attributes
    start_ns: int
    time_ns: int
    value: int | float | HistogramValue


@dataclass(slots=True)
class Metric:
    name: str = ""
    description: str = ""
    unit: str = ""
    kind: str | None = None
    """None for one whose kind of points is left out."""
    is_monotonic: bool = False
    is_delta: bool = False
    points: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class ResourceMetrics:
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    metrics: list[Metric] = field(default_factory=list)


class MetricsDataReader:
    """Reads one payload; `elements_max` limits what is made of all its metrics, points, attributes and buckets."""

    def __init__(self, elements_max: int) -> None:
        self.left_out = 0
        """Points of kinds that are not read."""
        self._elements = elements_max
        self._attributes: dict[bytes, tuple[str, AttributeValue] | None] = {}

    def read(self, data: bytes) -> list[ResourceMetrics]:
        """InvalidProtobuf if these bytes are no MetricsData, or hold too much."""
        return [self._resource_metrics(each) for each in _messages(data, 1)]

    def _count(self, elements: int = 1) -> None:
        self._elements -= elements
        if self._elements < 0:
            raise InvalidProtobuf("there are too many metrics")

    def _resource_metrics(self, data: bytes) -> ResourceMetrics:
        self._count()
        found = ResourceMetrics()
        for number, kind, _, value in fields(data):
            if number == 1 and kind == BYTES:
                for each in _messages(value, 1):
                    self._add_attribute(found.attributes, each)
            elif number == 2 and kind == BYTES:
                found.metrics += [self._metric(each) for each in _messages(value, 2)]
        return found

    def _metric(self, data: bytes) -> Metric:
        self._count()
        found = Metric()
        for number, kind, _, value in fields(data):
            if kind != BYTES:
                continue
            if number == 1:
                found.name = string(value)
            elif number == 2:
                found.description = string(value)
            elif number == 3:
                found.unit = string(value)
            elif number in _KINDS:
                _begin_kind(found, _KINDS[number])
                self._read_points(found, value)
            elif number in (10, 11):
                _begin_kind(found, None)
                self.left_out += sum(1 for _ in _messages(value, 1))
        return found

    def _read_points(self, metric: Metric, data: bytes) -> None:
        read: Callable[[bytes], Point | None] = (
            self._histogram_point if metric.kind == HISTOGRAM else self._number_point
        )
        for number, kind, integer, value in fields(data):
            if number == 1 and kind == BYTES:
                self._count()
                point = read(value)
                if point is not None:
                    metric.points.append(point)
            elif number == 2 and kind == VARINT:
                metric.is_delta = integer == DELTA
            elif number == 3 and kind == VARINT:
                metric.is_monotonic = bool(integer)

    def _number_point(self, data: bytes) -> Point | None:
        attributes: dict[str, AttributeValue] = {}
        start_ns = time_ns = flags = 0
        value: int | float = 0
        for number, kind, integer, raw in fields(data):
            if number == 7 and kind == BYTES:
                self._add_attribute(attributes, raw)
            elif kind == FIXED64:
                if number == 4:
                    value = double(raw)
                elif number == 6:
                    value = sfixed64(raw)
                elif number == 2:
                    start_ns = fixed64(raw)
                elif number == 3:
                    time_ns = fixed64(raw)
            elif number == 8 and kind == VARINT:
                flags = integer
        return None if flags & NO_VALUE else Point(attributes, start_ns, time_ns, value)

    def _histogram_point(self, data: bytes) -> Point | None:
        attributes: dict[str, AttributeValue] = {}
        whole: dict[int, int] = {2: 0, 3: 0, 4: 0, 10: 0}
        total: float | None = None
        counts: list[int] = []
        bounds: list[float] = []
        for each in fields(data):
            number, kind, integer, raw = each
            if number == 9 and kind == BYTES:
                self._add_attribute(attributes, raw)
            elif number in whole:
                whole[number] = integer if kind == VARINT else _fixed64(each)
            elif number == 5 and kind == FIXED64:
                total = double(raw)
            elif number == 6 and kind in (BYTES, FIXED64):
                counts += unsigned(raw)
            elif number == 7 and kind in (BYTES, FIXED64):
                bounds += doubles(raw)
        self._count(len(counts))
        if len(counts) not in (0, len(bounds) + 1):
            raise InvalidProtobuf(f"a histogram has {len(counts)} buckets and {len(bounds)} bounds")
        value = HistogramValue(whole[4], total, tuple(counts), tuple(bounds))
        return None if whole[10] & NO_VALUE else Point(attributes, whole[2], whole[3], value)

    def _add_attribute(self, attributes: dict[str, AttributeValue], data: bytes) -> None:
        """The same attributes are on point after point, and are read once."""
        self._count()
        if data not in self._attributes:
            self._attributes[data] = _attribute(data)
        found = self._attributes[data]
        if found is not None:
            attributes[found[0]] = found[1]


def _begin_kind(metric: Metric, kind: str | None) -> None:
    """A metric has one kind of points: of several the last counts, as Protobuf has it for a choice."""
    if metric.points and kind != metric.kind:
        metric.points = []
    metric.kind = kind


_KINDS = {5: GAUGE, 7: SUM, 9: HISTOGRAM}


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """Those in the repeated field of this number, one by one: whoever counts them stops before all are made."""
    return (value for number, kind, _, value in fields(data) if number == wanted and kind == BYTES)


def _fixed64(one: Field) -> int:
    _, kind, _, raw = one
    if kind != FIXED64:
        raise InvalidProtobuf("a time or a count has another wire type")
    return fixed64(raw)


def _attribute(data: bytes) -> tuple[str, AttributeValue] | None:
    key, value = "", None
    for number, kind, _, raw in fields(data):
        if number == 1 and kind == BYTES:
            key = string(raw)
        elif number == 2 and kind == BYTES:
            value = _any_value(raw)
    return None if value is None else (key, value)


def _any_value(data: bytes) -> AttributeValue | None:
    found: AttributeValue | None = None
    for number, kind, integer, raw in fields(data):
        if number == 1 and kind == BYTES:
            found = string(raw)
        elif number == 2 and kind == VARINT:
            found = bool(integer)
        elif number == 3 and kind == VARINT:
            found = signed(integer)
        elif number == 4 and kind == FIXED64:
            found = double(raw)
    return found
