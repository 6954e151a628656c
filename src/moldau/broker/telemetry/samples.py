"""One push as samples of Prometheus: a job for a thread, whose result the event loop adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from moldau.broker.telemetry.subscriptions import Client
from moldau.core.exposition import COUNTER, GAUGE, HISTOGRAM
from moldau.core.ids import format_uuid
from moldau.core.limits import (
    METRICS_CLIENT_ID_BYTES_MAX,
    TELEMETRY_ELEMENTS_MAX,
    TELEMETRY_SERIES_CHARS_MAX,
    TELEMETRY_SERIES_PER_CLIENT_MAX,
)
from moldau.core.text import cut
from moldau.telemetry import metrics_data
from moldau.telemetry.metrics_data import HistogramValue, Metric, MetricsDataReader, Point
from moldau.telemetry.naming import labels_of, metric_name, rendered
from moldau.telemetry.protobuf import InvalidProtobuf
from moldau.wire.compression import decompress
from moldau.wire.records import InvalidRecord

STANDARD = "org_apache_kafka_"
APART = "client_"  # before names that are not Kafka's, so that no client writes into the broker's own metrics
LABELS_MAX = 32
HELP_CHARS_MAX = 200


class Sample(NamedTuple):
    family: str
    kind: str
    help_text: str
    series: str
    """The name with its labels, as it stands in a page."""
    value: float
    is_delta: bool
    time_ns: int


class Samples(NamedTuple):
    found: Sequence[Sample]
    left_out: int


def open_payload(codec: int, payload: bytes, *, bytes_max: int) -> bytes:
    """What a client compressed. InvalidRecord, also for more than `bytes_max`."""
    return bytes(decompress(codec, payload, bytes_max=bytes_max))


def samples_of(client: Client, data: bytes) -> Samples:
    """InvalidRecord for what is no MetricsData, or too much of it."""
    reader = MetricsDataReader(TELEMETRY_ELEMENTS_MAX)
    try:
        resources = reader.read(data)
    except InvalidProtobuf as wrong:
        raise InvalidRecord(str(wrong)) from None
    known = client_labels(client)
    found: list[Sample] = []
    left_out, left = reader.left_out, TELEMETRY_SERIES_PER_CLIENT_MAX
    for resource in resources:
        of_resource = labels_of(resource.attributes)
        points = [(metric, point) for metric in resource.metrics for point in metric.points]
        # What a resource has is merged with each of its points: where none can be shown, that takes seconds. Each
        # point is a series at least, so that no more of them need be looked at than there may be series.
        looked_at = points[:left] if _may_be_shown(of_resource) else []
        left -= len(looked_at)
        left_out += len(points) - len(looked_at)
        for metric, point in looked_at:
            samples = _samples(metric, point, {**of_resource, **labels_of(point.attributes), **known})
            if not samples or len(found) + len(samples) > TELEMETRY_SERIES_PER_CLIENT_MAX:
                left_out += 1
            else:
                found += samples
    return Samples(found, left_out)


def _may_be_shown(labels: Mapping[str, str]) -> bool:
    """Escaping makes them no shorter."""
    chars = sum([len(key) + len(value) for key, value in labels.items()])
    return len(labels) <= LABELS_MAX and chars <= TELEMETRY_SERIES_CHARS_MAX


def client_labels(client: Client) -> dict[str, str]:
    """What no attribute of a client can replace."""
    return {
        "client_id": cut(client.client_id, METRICS_CLIENT_ID_BYTES_MAX),
        "client_instance_id": format_uuid(client.instance_id),
        "client_software_name": cut(client.software_name, METRICS_CLIENT_ID_BYTES_MAX),
        "client_software_version": cut(client.software_version, METRICS_CLIENT_ID_BYTES_MAX),
    }


def _samples(metric: Metric, point: Point, labels: Mapping[str, str]) -> list[Sample]:
    """Nothing for what is too long to be shown, which is found before it is made."""
    if len(metric.name) > TELEMETRY_SERIES_CHARS_MAX or not _may_be_shown(labels):
        return []
    if isinstance(point.value, HistogramValue) and len(point.value.bucket_counts) > TELEMETRY_SERIES_PER_CLIENT_MAX:
        return []
    is_counter = metric.kind == metrics_data.SUM and metric.is_monotonic
    name = metric_name(metric.name, metric.unit, is_counter=is_counter)
    family = name if name.startswith(STANDARD) else APART + name
    shown = rendered(labels)
    if len(family) + len(shown) > TELEMETRY_SERIES_CHARS_MAX:
        return []
    help_text = " ".join((metric.description or metric.name)[:HELP_CHARS_MAX].replace("\\", "\\\\").split())
    if isinstance(point.value, HistogramValue):
        rows = [(f"{family}{suffix}", value) for suffix, value in _of_histogram(point.value, shown)]
        kind = HISTOGRAM
    else:
        rows = [(f"{family}{{{shown}}}", point.value)]
        kind = COUNTER if is_counter else GAUGE
    is_delta = metric.is_delta and metric.kind != metrics_data.GAUGE
    return [Sample(family, kind, help_text, series, value, is_delta, point.time_ns) for series, value in rows]


def _of_histogram(value: HistogramValue, shown: str) -> list[tuple[str, float]]:
    ends = [*map(str, value.bounds), "+Inf"] if value.bucket_counts else []
    rows: list[tuple[str, float]] = [
        (f'_bucket{{{shown},le="{end}"}}', count)
        for end, count in zip(ends, accumulate(value.bucket_counts), strict=True)
    ] or [(f'_bucket{{{shown},le="+Inf"}}', value.count)]
    if value.sum is not None:
        rows.append((f"_sum{{{shown}}}", value.sum))
    rows.append((f"_count{{{shown}}}", value.count))
    return rows
