"""Partitions of this broker: how many there are, and how each is. All of it is looked up when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.context import Services
from moldau.coordinator.long_work import in_slices
from moldau.core.exposition import Exposition
from moldau.replication.partition import Partition

LOG = (
    ("kafka_log_log_size", "Bytes of a replica on this broker."),
    ("kafka_log_log_logstartoffset", "The first offset that a replica has."),
    ("kafka_log_log_logendoffset", "The offset behind the last one that a replica has."),
    ("kafka_log_log_numlogsegments", "Segments of a replica."),
)
LED = (
    ("kafka_cluster_partition_replicascount", "Replicas of a partition that this broker leads."),
    ("kafka_cluster_partition_insyncreplicascount", "Those of them that are in sync."),
    ("kafka_cluster_partition_underreplicated", "Whether some are not."),
    ("kafka_cluster_partition_underminisr", "Whether fewer are in sync than min.insync.replicas asks for."),
)


@dataclass(slots=True)
class Counts:
    partitions: int = 0
    leaders: int = 0
    offline: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    producer_ids: int = 0


async def write_partitions(services: Services, out: Exposition) -> None:
    of_log = [out.lines(name, text) for name, text in LOG]
    of_led = [out.lines(name, text) for name, text in LED]
    counts = Counts()
    async for partition in in_slices([*services.partitions.all()], services.long_work):
        log = partition.log
        counts.partitions += 1
        counts.producer_ids += len(log.producers.producers)
        # A topic's name has no character that a label would have to escape.
        labels = f'{{topic="{partition.topic}",partition="{partition.index}"}}'
        figures = (log.size_bytes(), log.log_start_offset, log.end_offset, len(log.segments))
        for (name, _), lines, figure in zip(LOG, of_log, figures, strict=True):
            lines.append(f"{name}{labels} {figure}")
        if partition.is_leader:
            for (name, _), lines, figure in zip(LED, of_led, _led(partition, counts), strict=True):
                lines.append(f"{name}{labels} {figure}")
        elif log.offline is not None:
            counts.offline += 1
    _write(counts, out, max_lag=services.replication.max_lag)


def _led(partition: Partition, counts: Counts) -> tuple[int, int, int, int]:
    replicas, configured = partition.replicas, partition.log.config.min_insync_replicas
    total, in_sync = (1, 1) if replicas is None else (len(replicas.assigned), len(replicas.isr))
    least = min(configured, total)
    under_replicated, under_min_isr = in_sync < total, in_sync < least
    counts.leaders += 1
    counts.under_replicated += under_replicated
    counts.under_min_isr += under_min_isr
    counts.at_min_isr += in_sync == least
    return total, in_sync, int(under_replicated), int(under_min_isr)


def _write(counts: Counts, out: Exposition, *, max_lag: int) -> None:
    for suffix, figure, help_text in (
        ("partitioncount", counts.partitions, "Replicas on this broker."),
        ("leadercount", counts.leaders, "Partitions that this broker leads."),
        ("offlinereplicacount", counts.offline, "Replicas in log directories that are offline."),
        ("underreplicatedpartitions", counts.under_replicated, "Partitions led here that lack replicas in sync."),
        ("underminisrpartitioncount", counts.under_min_isr, "Partitions led here below min.insync.replicas."),
        ("atminisrpartitioncount", counts.at_min_isr, "Partitions led here that can't lose a replica in sync."),
        ("producersidcount", counts.producer_ids, "Producers that replicas on this broker know."),
    ):
        out.add(f"kafka_server_replicamanager_{suffix}", help_text, {}, figure)
    help_text = "The most records that a replica on this broker lacks of its leader's."
    out.add("kafka_server_replicafetchermanager_maxlag", help_text, {"clientid": "Replica"}, max_lag)
