"""A page of Prometheus' text as the metrics of OpenTelemetry's SDK, with the same names and labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)

from moldau.core.exposition import COUNTER, HISTOGRAM, SUMMARY

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?')
_ESCAPE = re.compile(r"\\(.)")
_NOT_ITSELF = {"n": "\n"}
STARTED = "process_start_time_seconds"
_CUMULATIVE = AggregationTemporality.CUMULATIVE


@dataclass(slots=True)
class Family:
    name: str
    help_text: str = ""
    kind: str = "gauge"
    samples: list[tuple[str, str, float]] = field(default_factory=list)
    """Name, labels as they stand in the page, and value."""


def families(text: str) -> list[Family]:
    found: dict[str, Family] = {}
    family = Family("")
    for line in text.split("\n"):  # nothing else ends a line: labels of clients hold what `splitlines` takes for an end
        if line.startswith("# "):
            _, what, name, rest = [*line.split(" ", 3), ""][:4]
            family = found.setdefault(name, Family(name))
            if what == "TYPE":
                family.kind = rest
            elif what == "HELP":
                family.help_text = rest
            continue
        match = _SAMPLE.match(line)
        if match is not None:
            name = match[1]
            if name != family.name and not name.startswith(f"{family.name}_"):
                family = found.setdefault(name, Family(name))
            family.samples.append((name, match[2] or "", float(match[3])))
    return [each for each in found.values() if each.samples]


def metrics_of(page: str, *, now_ns: int) -> list[Metric]:
    known = families(page)
    started_s = next((each.samples[0][2] for each in known if each.name == STARTED), None)
    start_ns = now_ns if started_s is None else int(started_s * 1e9)
    return [metric for each in known for metric in _metrics(each, start_ns, now_ns)]


def _metrics(family: Family, start_ns: int, now_ns: int) -> Iterable[Metric]:
    def point(labels: str, value: float) -> NumberDataPoint:
        return NumberDataPoint(attributes_of(labels), start_ns, now_ns, value)

    def metric(name: str, data: Sum | Gauge | Histogram) -> Metric:
        return Metric(name, family.help_text, "", data)

    if family.kind == HISTOGRAM:
        yield metric(family.name, Histogram(_histograms(family, start_ns, now_ns), _CUMULATIVE))
        return
    by_name: dict[str, list[NumberDataPoint]] = {}
    for name, labels, value in family.samples:
        by_name.setdefault(name, []).append(point(labels, value))
    for name, points in by_name.items():
        # The SDK has no summary: quantiles are gauges, and what they are of is counted.
        counts = family.kind == COUNTER or (family.kind == SUMMARY and name != family.name)
        yield metric(name, Sum(points, _CUMULATIVE, is_monotonic=True) if counts else Gauge(points))


def _histograms(family: Family, start_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for name, labels, value in family.samples:
        attributes = attributes_of(labels)
        end = attributes.pop("le", None)
        key = tuple(attributes.items())
        if end is not None:
            buckets.setdefault(key, []).append((float(end), value))
        elif name.endswith("_sum"):
            sums[key] = value
    found = []
    for key, ends in buckets.items():
        ends.sort()
        counts = [int(upto - before) for before, upto in pairwise([0, *(count for _, count in ends)])]
        bounds = [end for end, _ in ends[:-1]]
        found.append(_histogram(dict(key), (start_ns, now_ns), counts=counts, bounds=bounds, total=sums.get(key, 0.0)))
    return found


def _histogram(
    attributes: dict[str, str], times_ns: tuple[int, int], *, counts: list[int], bounds: list[float], total: float
) -> HistogramDataPoint:
    unknown: float = None  # type: ignore[assignment]  # a page does not tell, and the exporter leaves it out
    return HistogramDataPoint(attributes, *times_ns, sum(counts), total, counts, bounds, unknown, unknown)


def attributes_of(labels: str) -> dict[str, str]:
    return {
        key: _ESCAPE.sub(lambda found: _NOT_ITSELF.get(found[1], found[1]), value)
        for key, value in _LABEL.findall(labels)
    }
