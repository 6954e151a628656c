"""What Spark reports about a query, as the few figures that a person asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    batch: int = -1
    rows: int = 0
    rows_a_second: float = 0.0
    lag: int | None = None
    watermark: str | None = None
    batch_ms: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)  # rows of this batch, by expectation
    lags: Mapping[str, int] = field(default_factory=dict)  # by `topic/partition`

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def progress_of(report: Mapping[str, Any]) -> Progress:
    """From the JSON of a StreamingQueryProgress."""
    sources = report.get("sources") or []
    known = [lags for lags in map(_lags, sources) if lags is not None]
    observed = report.get("observedMetrics") or {}
    return Progress(
        batch=int(report.get("batchId", -1)),
        rows=int(_total(report, sources, "numInputRows")),
        rows_a_second=_total(report, sources, "processedRowsPerSecond"),
        lag=sum(sum(lags.values()) for lags in known) if known else None,
        watermark=_watermark(report),
        batch_ms=int((report.get("durationMs") or {}).get("triggerExecution") or report.get("batchDuration") or 0),
        broken={name: count for name, count in _broken(observed) if count},
        # Two sources may read the same partition: the one that is further behind counts.
        lags={
            place: max(lags.get(place, 0) for lags in known)
            for place in sorted({one for each in known for one in each})
        },
    )


def _total(report: Mapping[str, Any], sources: list[Mapping[str, Any]], name: str) -> float:
    """Over all sources; reports that come over Connect leave it to the reader to add them up."""
    return float(report.get(name) or sum(source.get(name) or 0 for source in sources))


def _watermark(report: Mapping[str, Any]) -> str | None:
    """Before the first record that has a time, Spark's watermark is the beginning of time."""
    told = (report.get("eventTime") or {}).get("watermark")
    return None if told is None or told.startswith("1970-01-01T00:00:00") else str(told)


def _broken(observed: Mapping[str, Any]) -> list[tuple[str, int]]:
    found = []
    for name, row in observed.items():
        values = row if isinstance(row, Mapping) else row.asDict() if hasattr(row, "asDict") else {}
        found.append((name, int(values.get("broken") or 0)))
    return found


def _lags(source: Mapping[str, Any]) -> dict[str, int] | None:
    """Records that are in each partition and not yet read, by the offsets that the source reports."""
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    if end is None or latest is None:
        return None
    return {place: max(0, offset - end.get(place, 0)) for place, offset in latest.items()}


def _offsets(told: Any) -> dict[str, int] | None:
    """`{"topic": {"0": 12}}`, as text or as it is, by `topic/0`."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return None
    if not isinstance(told, Mapping):
        return None
    found = {}
    for topic, partitions in told.items():
        if isinstance(partitions, Mapping):
            for partition, offset in partitions.items():
                if isinstance(offset, int):
                    found[f"{topic}/{partition}"] = offset
    return found or None
