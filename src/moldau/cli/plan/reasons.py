"""A plan as rows, each number with its reason, and as the command that creates the topic."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from moldau.cli.plan.figures import Figures
from moldau.cli.plan.sizing import (
    BROKER_MEMORY,
    CACHE_S,
    PARTITION_BYTES_PER_DAY,
    SEGMENTS_IN_RETENTION,
    Plan,
    Wanted,
)
from moldau.cli.units import duration_text, rate_text, size_text


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    value: str
    why: str
    number: float

    def row(self) -> dict[str, object]:
        return {"what": self.what, "value": self.value, "why": self.why, "number": self.number}


def rows_of(plan: Plan, wanted: Wanted, figures: Figures) -> list[Row]:
    peak = wanted.write * wanted.peak
    by = "producers" if figures.producer < figures.consumer else "consumers"
    deciding = max(plan.needs, key=lambda each: each.brokers)
    given = "given; " if wanted.brokers is not None else ""
    return [
        Row(
            "partitions by rule",
            f"{plan.partitions_by_rule:,}",
            f"max(T/p, T/c) = max({rate_text(peak)} / {rate_text(figures.producer)}, {rate_text(peak)} /"
            f" {rate_text(figures.consumer)}): {by} are slower",
            plan.partitions_by_rule,
        ),
        Row(
            "partitions",
            f"{plan.partitions:,}",
            f"a multiple of {plan.brokers} brokers, so that each leads as many; at most that many consumers share it",
            plan.partitions,
        ),
        Row(
            "brokers",
            f"{plan.brokers:,}",
            f"{given}{deciding.what} asks for {deciding.brokers}: {deciding.why}",
            plan.brokers,
        ),
        *_machines(plan),
        *(Row(f"brokers for {each.what}", f"{each.brokers:,}", each.why, each.brokers) for each in plan.needs),
        *_per_broker(plan, wanted),
        _partition_size(plan),
        *_settings(plan, wanted),
    ]


def _per_broker(plan: Plan, wanted: Wanted) -> list[Row]:
    kept = wanted.write * wanted.retention_ms / 1_000
    return [
        Row(
            "disk per broker",
            size_text(plan.disk_per_broker),
            f"{rate_text(wanted.write)} for {duration_text(wanted.retention_ms)} = {size_text(kept)}, x"
            f" {wanted.replication} replicas / {plan.brokers} brokers, {wanted.headroom:.0%} of the disk free",
            plan.disk_per_broker,
        ),
        Row(
            "memory per broker",
            size_text(plan.memory_per_broker),
            f"{size_text(BROKER_MEMORY)} for the process, and page cache for {CACHE_S} s of writes, from which readers"
            " that keep up are served",
            plan.memory_per_broker,
        ),
        Row(
            "network in per broker",
            rate_text(plan.network_in),
            "producers and replication, at the peak",
            plan.network_in,
        ),
        Row(
            "network out per broker",
            rate_text(plan.network_out),
            "consumers and replication, at the peak",
            plan.network_out,
        ),
    ]


def _settings(plan: Plan, wanted: Wanted) -> list[Row]:
    return [
        Row(
            "segment.bytes",
            f"{plan.segment_bytes:,}",
            f"about {SEGMENTS_IN_RETENTION} segments in retention, 1 GiB at most: only whole segments are deleted",
            plan.segment_bytes,
        ),
        Row(
            "segment.ms",
            f"{plan.segment_ms:,}",
            "rolls a segment in time where traffic is less than planned, so that retention holds",
            plan.segment_ms,
        ),
        Row(
            "min.insync.replicas",
            f"{plan.min_in_sync}",
            "acks=all waits for that many: one may be lost without stopping writes or losing what was acknowledged"
            if wanted.replication > 2
            else "with so few replicas a loss stops writes or may take the last copy: 3 replicas have neither",
            plan.min_in_sync,
        ),
    ]


def _machines(plan: Plan) -> list[Row]:
    if plan.machines == plan.brokers:
        return []
    each = ceil(plan.brokers / plan.machines)
    why = (
        f"network, disk and replicas ask for no more, and a broker of Moldau uses one core: {each} on each machine, by"
        f" moldau start --brokers {each}. One broker of Apache Kafka uses all cores of its machine"
    )
    return [Row("machines", f"{plan.machines:,}", why, plan.machines)]


def _partition_size(plan: Plan) -> Row:
    limit = size_text(PARTITION_BYTES_PER_DAY)
    if plan.partition_per_day <= PARTITION_BYTES_PER_DAY:
        why = f"below the {limit} a day that are advised where nothing is known of consumers"
    else:
        count = ceil(plan.partition_per_day * plan.partitions / PARTITION_BYTES_PER_DAY)
        why = (
            f"above the {limit} a day that are advised where nothing is known of consumers, which would be {count:,}"
            " partitions: large ones take longer to move, to recover and to catch up with"
        )
    return Row("partition per day", size_text(plan.partition_per_day), why, plan.partition_per_day)


def create_line(plan: Plan, wanted: Wanted, topic: str) -> str:
    configs = {
        "retention.ms": wanted.retention_ms,
        "min.insync.replicas": plan.min_in_sync,
        "segment.bytes": plan.segment_bytes,
        "segment.ms": plan.segment_ms,
    }
    words = " ".join(f"--config {name}={value}" for name, value in configs.items())
    return (
        f"moldau topics create {topic} --partitions {plan.partitions} --replication-factor {wanted.replication} {words}"
    )
