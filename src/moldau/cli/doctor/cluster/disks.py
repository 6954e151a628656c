"""Log directories of the brokers: those that failed, and whether there is room for what retention still lets in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moldau.cli.doctor.cluster.facts import RETENTION_BYTES, RETENTION_MS, ClusterFacts, LogDirectory, Partition, Topic
from moldau.cli.doctor.findings import Finding, Severity, ok
from moldau.cli.units import duration_text, size_text
from moldau.core.ids import TopicPartition

USABLE_SHARE_PROBLEM, USABLE_SHARE_WARNING = 0.05, 0.15
DO = (
    "moldau topics list     # which topics are large",
    "moldau topics alter TOPIC --config retention.ms=…     # or retention.bytes, for the largest",
)


def check_log_directories(facts: ClusterFacts) -> Iterator[Finding]:
    known = {each.place: (topic, each) for topic in facts.topics.values() for each in topic.partitions}
    for directory in facts.directories:
        subject = f"broker {directory.broker}, {directory.path}"
        if directory.error is not None:
            yield Finding(
                Severity.PROBLEM,
                "log-directory-offline",
                subject,
                directory.error,
                "its replicas are offline: until the broker is started with a disk that works",
                ("dmesg | tail -50     # on the broker's machine", f"the log of broker {directory.broker}"),
            )
        elif directory.total_bytes is not None and directory.usable_bytes is not None:
            yield _room(directory, subject, directory.total_bytes, directory.usable_bytes, known)


def _room(
    directory: LogDirectory,
    subject: str,
    total: int,
    usable: int,
    known: Mapping[TopicPartition, tuple[Topic, Partition]],
) -> Finding:
    share = usable / total if total else 1.0
    seen = f"{size_text(usable)} of {size_text(total)} free ({share:.0%})"
    wanted, rate = 0.0, 0.0
    for place, size in directory.replicas.items():
        if place in known:
            topic, partition = known[place]
            wanted += max(0.0, kept_bytes(topic, partition) - size)
            rate += partition.bytes_per_s or 0.0
    if wanted > usable:
        seen += f"; retention lets in {size_text(wanted)} more"
        until = f" At the rate of the last day that is in {duration_text(usable / rate * 1_000)}." if rate else ""
        return Finding(
            Severity.WARNING,
            "log-directory-room",
            subject,
            seen,
            f"the disk is full before retention begins to delete.{until}",
            (*DO, "or a larger disk"),
        )
    if share < USABLE_SHARE_WARNING:
        severity = Severity.PROBLEM if share < USABLE_SHARE_PROBLEM else Severity.WARNING
        why = "a full disk refuses writes, and takes the log directory offline on Apache Kafka"
        return Finding(severity, "log-directory-room", subject, seen, why, DO)
    return ok("log-directory-room", subject, seen)


def kept_bytes(topic: Topic, partition: Partition) -> float:
    """What a replica takes once retention is filled, as far as traffic tells."""
    retention_ms, retention_bytes = topic.number(RETENTION_MS), topic.number(RETENTION_BYTES)
    if not topic.deletes or not partition.bytes_per_s:
        return 0.0
    kept = partition.bytes_per_s * retention_ms / 1_000 if retention_ms is not None and retention_ms >= 0 else 0.0
    if retention_bytes is not None and retention_bytes >= 0:
        kept = min(kept, retention_bytes) if kept else float(retention_bytes)
    return kept
