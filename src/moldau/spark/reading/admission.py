"""How much of what is there one micro-batch takes: pure arithmetic on offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import Offsets


@dataclass(frozen=True, slots=True)
class Admission:
    """The limits of a query: at most so many records a batch, at least so many unless it has waited long enough."""

    records_max: int | None = None
    records_min: int | None = None
    delay_ms_max: int = 15 * 60_000

    def end_of_batch(
        self,
        start: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int],
        *,
        waited_ms: int,
        may_wait: bool = True,
    ) -> Offsets:
        """Where the next batch ends; `start` itself when it shall wait for more.

        `start` has an offset for each partition of `latest`; partitions that are gone are left out of the answer.
        """
        available = sum(max(0, latest[place] - start[place]) for place in latest)
        if may_wait and self.records_min is not None and available < self.records_min and waited_ms < self.delay_ms_max:
            return {place: start[place] for place in latest}
        if self.records_max is None or available <= self.records_max:
            return dict(latest)
        return share(start, latest, records_max=self.records_max)


def share(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], *, records_max: int) -> Offsets:
    """Each partition gets its part of the limit in proportion to its lag, and none is starved.

    A part of less than one record is rounded up, so a batch may exceed the limit by one record for each partition.
    What rounding down leaves over is given out too: else a run over n times the limit would take n + 1 batches.
    """
    lags = {place: latest[place] - start[place] for place in latest}
    total = sum(lag for lag in lags.values() if lag > 0)
    if not total:
        return dict(latest)
    # Offsets that went back are what the report of lost data is about; the batch follows the broker.
    parts = {place: min(lag, max(1, records_max * lag // total)) if lag > 0 else lag for place, lag in lags.items()}
    left = records_max - sum(part for part in parts.values() if part > 0)
    for place in sorted(parts, key=lambda place: records_max * lags[place] % total, reverse=True)[: max(0, left)]:
        parts[place] += parts[place] < lags[place]
    return {place: start[place] + part for place, part in parts.items()}


def cap(
    latest: Mapping[TopicPartition, int], target: Mapping[TopicPartition, int], *, start: Mapping[TopicPartition, int]
) -> Offsets:
    """No further than `target`, and never back behind `start`: a run over what was available when it began."""
    return {place: max(start.get(place, 0), min(latest[place], target[place])) for place in latest if place in target}
