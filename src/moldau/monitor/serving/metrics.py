"""Prometheus' text, by the names of dashboards: Burrow's, kafka_exporter's, kafka-lag-exporter's and KMinion's.

All of it is made of the last look: a scrape asks no broker. Names of kafka_exporter have a label `cluster` only where
several clusters are watched, since its dashboards know none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from moldau.core.ids import TopicPartition
from moldau.monitor.judging import Judged
from moldau.monitor.rules import WHOLE, GroupVerdict, PartitionVerdict
from moldau.monitor.sampling.groups import Member
from moldau.monitor.service import Monitor
from moldau.monitor.watching import Watch

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGE, COUNTER = "gauge", "counter"
NOBODY = Member("", "", "", ())

Labels = Mapping[str, object]


@dataclass(slots=True)
class Exposition:
    """Metrics by their names, each with its samples in one place, as the format wants it."""

    families: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, help_text: str, labels: Labels, value: float | int | None, kind: str = GAUGE) -> None:
        lines = self.families.get(name)
        if lines is None:
            lines = self.families[name] = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        if value is not None:
            shown = ",".join(f'{key}="{escaped(str(each))}"' for key, each in labels.items())
            lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")

    def text(self) -> str:
        return "".join(f"{line}\n" for lines in self.families.values() for line in lines)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exposition(monitor: Monitor) -> str:
    out = Exposition()
    for watch in monitor.watches.values():
        _own(out, watch)
        judged = watch.state
        if judged is None:
            continue
        alone = {} if len(monitor.watches) == 1 else {"cluster": watch.name}
        for family, write in WRITERS.items():
            if family in monitor.settings.metrics:
                write(out, watch.name, alone, judged)
    return out.text()


def _own(out: Exposition, watch: Watch) -> None:
    labels = {"cluster": watch.name}
    out.add("moldau_monitor_up", "Whether the last look at the cluster succeeded.", labels, int(watch.failure is None))
    judged = watch.state
    if judged is None:
        return
    look = judged.look
    out.add("moldau_monitor_look_seconds", "How long the last look took.", labels, watch.look_ms / 1_000)
    out.add("moldau_monitor_last_look_timestamp_seconds", "When the cluster was last seen.", labels, look.at_ms / 1_000)
    out.add("moldau_monitor_groups", "Groups that are watched.", labels, len(judged.verdicts))
    out.add(
        "moldau_monitor_reads_commits",
        "Whether __consumer_offsets can be read; else offsets are polled.",
        labels,
        int(look.reads_commits),
    )
    out.add("moldau_monitor_problems", "What parts of the last look were refused.", labels, len(look.problems))


def _partitions(judged: Judged) -> Iterator[tuple[GroupVerdict, PartitionVerdict, int]]:
    """Those that the group has an offset of."""
    for verdict in judged.verdicts.values():
        committed = judged.committed.get(verdict.group, {})
        for each in verdict.partitions:
            offset = committed.get(TopicPartition(each.topic, each.partition))
            if offset is not None:
                yield verdict, each, offset


def burrow(out: Exposition, cluster: str, _: Labels, judged: Judged) -> None:
    for group in judged.verdicts.values():
        labels: dict[str, object] = {"cluster": cluster, "consumer_group": group.group}
        out.add("burrow_kafka_consumer_lag_total", "The lag of all partitions.", labels, group.totallag)
        status = "1 OK, 2 WARN, 3 ERR, by the worst partition."
        out.add("burrow_kafka_consumer_status", status, labels, int(group.status))
        for each in group.partitions:
            place = {**labels, "topic": each.topic, "partition": each.partition}
            out.add("burrow_kafka_consumer_partition_lag", "Unread records.", place, each.current_lag)
            if each.complete == WHOLE and each.end is not None:
                offset = "The newest offset committed."
                out.add("burrow_kafka_consumer_current_offset", offset, place, each.end.offset)
                status = "1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND."
                out.add("burrow_kafka_topic_partition_status", status, place, int(each.status))
    for at, end in _sorted(judged.look.ends):
        labels = {"cluster": cluster, "topic": at.topic, "partition": at.partition}
        out.add("burrow_kafka_topic_partition_offset", "The end of the log.", labels, end)


def kafka_exporter(out: Exposition, _: str, alone: Labels, judged: Judged) -> None:
    look = judged.look
    out.add("kafka_brokers", "Number of brokers.", alone, len(look.layout.nodes))
    for node in look.layout.nodes.values():
        labels = {**alone, "address": f"{node.host}:{node.port}", "id": node.id}
        out.add("kafka_broker_info", "A broker.", labels, 1)
    for topic in look.layout.topics.values():
        name = {**alone, "topic": topic.name}
        out.add("kafka_topic_partitions", "Partitions of the topic.", name, len(topic.partitions))
        for part in topic.partitions:
            labels = {**alone, "partition": part.place.partition, "topic": topic.name}
            metric = "kafka_topic_partition"
            out.add(f"{metric}_current_offset", "The end of the log.", labels, look.ends.get(part.place))
            out.add(f"{metric}_oldest_offset", "The start of the log.", labels, look.starts.get(part.place))
            out.add(f"{metric}_in_sync_replica", "Replicas in sync.", labels, len(part.in_sync))
            out.add(f"{metric}_leader", "The leader's id.", labels, part.leader)
            preferred = bool(part.replicas) and part.leader == part.replicas[0]
            out.add(f"{metric}_leader_is_preferred", "1 if the first replica leads.", labels, int(preferred))
            out.add(f"{metric}_replicas", "Replicas.", labels, len(part.replicas))
            lacking = int(len(part.in_sync) < len(part.replicas))
            out.add(f"{metric}_under_replicated_partition", "1 if a replica is out of sync.", labels, lacking)
    _exported_groups(out, alone, judged)


def _exported_groups(out: Exposition, alone: Labels, judged: Judged) -> None:
    metric = "kafka_consumergroup"
    for name in judged.verdicts:
        labels = {**alone, "consumergroup": name}
        out.add(f"{metric}_members", "Members of the group.", labels, len(judged.group(name).members))
    sums: dict[tuple[str, str], list[int]] = {}
    for group, each, offset in _partitions(judged):
        labels = {**alone, "consumergroup": group.group, "partition": each.partition, "topic": each.topic}
        out.add(f"{metric}_current_offset", "The offset committed.", labels, offset)
        out.add(f"{metric}_lag", "Unread records.", labels, each.current_lag)
        total = sums.setdefault((group.group, each.topic), [0, 0])
        total[0] += offset
        total[1] += each.current_lag
    for (name, topic), (offsets, lag) in sums.items():
        labels = {**alone, "consumergroup": name, "topic": topic}
        out.add(f"{metric}_current_offset_sum", "The offsets committed, of all partitions.", labels, offsets)
        out.add(f"{metric}_lag_sum", "Unread records of all partitions.", labels, lag)


def kafka_lag_exporter(out: Exposition, cluster: str, _: Labels, judged: Judged) -> None:
    metric = "kafka_consumergroup_group"
    topics: dict[tuple[str, str], int] = {}
    owners: dict[str, dict[TopicPartition, Member]] = {}
    for group, each, offset in _partitions(judged):
        if group.group not in owners:
            members = judged.group(group.group).members
            owners[group.group] = {place: member for member in members for place in member.assigned}
        owner = owners[group.group].get(TopicPartition(each.topic, each.partition), NOBODY)
        labels: dict[str, object] = {
            "cluster_name": cluster, "group": group.group, "topic": each.topic, "partition": each.partition,
            "member_host": owner.host, "consumer_id": owner.id, "client_id": owner.client_id,
        }  # fmt: skip
        out.add(f"{metric}_offset", "The offset committed.", labels, offset)
        out.add(f"{metric}_lag", "Unread records.", labels, each.current_lag)
        waiting = "How long the first unread record has been waiting, by its timestamp."
        out.add(f"{metric}_lag_seconds", waiting, labels, each.lag_seconds)
        key = group.group, each.topic
        topics[key] = topics.get(key, 0) + each.current_lag
    for group in judged.verdicts.values():
        labels = {"cluster_name": cluster, "group": group.group}
        most = group.maxlag.current_lag if group.maxlag else 0
        out.add(f"{metric}_max_lag", "Unread records of the partition with most.", labels, most)
        out.add(f"{metric}_max_lag_seconds", "The longest wait of a partition.", labels, group.lag_seconds)
        out.add(f"{metric}_sum_lag", "Unread records.", labels, group.totallag)
    for (name, topic), lag in topics.items():
        labels = {"cluster_name": cluster, "group": name, "topic": topic}
        out.add(f"{metric}_topic_sum_lag", "Unread records of the topic.", labels, lag)
    for metric, help_text, offsets in (
        ("kafka_partition_latest_offset", "The end of the log.", judged.look.ends),
        ("kafka_partition_earliest_offset", "The start of the log.", judged.look.starts),
    ):
        for place, end in _sorted(offsets):
            labels = {"cluster_name": cluster, "topic": place.topic, "partition": place.partition}
            out.add(metric, help_text, labels, end)


def kminion(out: Exposition, _: str, alone: Labels, judged: Judged) -> None:
    look = judged.look
    for metric, help_text, offsets in (
        ("kminion_kafka_topic_partition_high_water_mark", "The end of the log.", look.ends),
        ("kminion_kafka_topic_partition_low_water_mark", "The start of the log.", look.starts),
    ):
        for place, offset in _sorted(offsets):
            labels = {**alone, "topic_name": place.topic, "partition_id": place.partition}
            out.add(metric, help_text, labels, offset)
    lags: dict[tuple[str, str], int] = {}
    for group, each, _offset in _partitions(judged):
        labels = {**alone, "group_id": group.group, "topic_name": each.topic, "partition_id": each.partition}
        name = "kminion_kafka_consumer_group_topic_partition_lag"
        out.add(name, "Unread records.", labels, each.current_lag)
        key = group.group, each.topic
        lags[key] = lags.get(key, 0) + each.current_lag
    for (name, topic), lag in lags.items():
        labels = {**alone, "group_id": name, "topic_name": topic}
        out.add("kminion_kafka_consumer_group_topic_lag", "Unread records of the topic.", labels, lag)
    for name in judged.verdicts:
        seen = judged.group(name)
        labels = {**alone, "group_id": name}
        out.add("kminion_kafka_consumer_group_members", "Members of the group.", labels, len(seen.members))


WRITERS = {
    "burrow": burrow,
    "kafka_exporter": kafka_exporter,
    "kafka_lag_exporter": kafka_lag_exporter,
    "kminion": kminion,
}


def _sorted(offsets: Mapping[TopicPartition, int]) -> Iterable[tuple[TopicPartition, int]]:
    return sorted(offsets.items())
