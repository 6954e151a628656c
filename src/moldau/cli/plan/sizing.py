"""From a wanted load and figures to a plan. No I/O: a test is an equality."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from moldau.cli.plan.figures import Figures
from moldau.cli.units import rate_text

DAY_S = 86_400
PARTITION_BYTES_PER_DAY = 6 * 10**9
CACHE_S = 30  # of writes, which readers that are a little behind find in memory
BROKER_MEMORY = 10**9  # the process itself, its connections and what is under way
SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MIN = 1 << 30, 1 << 24
SEGMENT_MS_DEFAULT, SEGMENT_MS_MIN = 7 * 86_400_000, 60_000
SEGMENTS_IN_RETENTION = 20  # so that at most a twentieth is kept beyond retention
CPU = "CPU"  # of which a broker uses one core
PARTITIONS_MAX, BROKERS_MAX = 200_000, 10_000


@dataclass(frozen=True, slots=True)
class Wanted:
    write: float
    """Bytes a second on average, as producers send them."""
    read: float
    """Bytes a second on average, of all consumers together."""
    peak: float
    """How many times the average the busiest minutes have."""
    retention_ms: int
    replication: int
    headroom: float
    """The share of what hardware can do that stays free."""
    brokers: int | None = None
    """Where their number is given."""


@dataclass(frozen=True, slots=True)
class Need:
    """How many brokers one thing asks for."""

    what: str
    brokers: int
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    partitions_by_rule: int
    partitions: int
    brokers: int
    needs: tuple[Need, ...]
    disk_per_broker: float
    memory_per_broker: float
    network_in: float
    network_out: float
    partition_per_day: float
    segment_bytes: int
    segment_ms: int
    min_in_sync: int
    machines: int
    """Several brokers can share one where a single process is the limit."""
    is_short_of_brokers: bool
    """The given number of brokers is less than what the load asks for."""


class TooLarge(ValueError):
    """The load asks for more than a cluster can have."""


def plan_for(wanted: Wanted, figures: Figures) -> Plan:
    peak_write, peak_read = wanted.write * wanted.peak, wanted.read * wanted.peak
    needs = _needs(wanted, figures, peak_write, peak_read)
    needed = max(each.brokers for each in needs)
    brokers = needed if wanted.brokers is None else wanted.brokers
    by_rule = max(1, ceil(peak_write / figures.producer), ceil(peak_write / figures.consumer))
    partitions = rounded_up(by_rule, brokers)
    if partitions > PARTITIONS_MAX or brokers > BROKERS_MAX:
        raise TooLarge(
            f"that is {brokers:,} brokers and {partitions:,} partitions; a cluster has at most {BROKERS_MAX:,} and"
            f" {PARTITIONS_MAX:,}: split the load over several"
        )
    copies = wanted.replication - 1
    kept = wanted.write * wanted.retention_ms / 1_000
    written = peak_write * wanted.replication / brokers
    segment_bytes, segment_ms = segment(wanted.write / partitions, wanted.retention_ms)
    return Plan(
        by_rule,
        partitions,
        brokers,
        needs,
        disk_per_broker=kept * wanted.replication / brokers / (1 - wanted.headroom),
        memory_per_broker=BROKER_MEMORY + written * CACHE_S,
        network_in=written,
        network_out=(peak_read + peak_write * copies) / brokers,
        partition_per_day=wanted.write * DAY_S / partitions,
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        min_in_sync=max(1, wanted.replication - 1),
        machines=min(brokers, max(each.brokers for each in needs if each.what != CPU)),
        is_short_of_brokers=brokers < needed,
    )


def _needs(wanted: Wanted, figures: Figures, peak_write: float, peak_read: float) -> tuple[Need, ...]:
    """Each load is to fit the brokers that are left when one is lost, without their headroom."""
    usable = 1 - wanted.headroom
    copies = wanted.replication - 1
    written = peak_write * wanted.replication
    sent = peak_read + peak_write * copies
    spare = 1 if wanted.replication > 1 else 0
    after_loss = ", and one more that may be lost" if spare else ""

    def need(what: str, load: float, capacity: float) -> Need:
        count = ceil(load / (capacity * usable)) + spare
        return Need(
            what,
            max(1, count),
            f"{rate_text(load)} over {rate_text(capacity)} each, of which {wanted.headroom:.0%} stay free{after_loss}",
        )

    return (
        need("network in", written, figures.network),
        need("network out", sent, figures.network),
        need("disk", written, figures.disk),
        need(CPU, written, figures.broker),
        Need("replicas", wanted.replication, f"{wanted.replication} replicas are on as many brokers"),
    )


def rounded_up(count: int, step: int) -> int:
    return ceil(count / step) * step


def segment(bytes_per_s: float, retention_ms: int) -> tuple[int, int]:
    """segment.bytes and segment.ms of a partition with this traffic: about 20 segments in retention, 1 GiB at most."""
    kept = bytes_per_s * retention_ms / 1_000
    size = SEGMENT_BYTES_DEFAULT
    while size > SEGMENT_BYTES_MIN and size > kept / SEGMENTS_IN_RETENTION:
        size //= 2
    return size, min(SEGMENT_MS_DEFAULT, max(SEGMENT_MS_MIN, retention_ms // SEGMENTS_IN_RETENTION))
