"""The names of kafka_exporter."""

from __future__ import annotations

from moldau.monitor.sampling.topics import Partition
from moldau.monitor.serving.metrics.book import Book, Metric
from moldau.monitor.serving.metrics.labels import Page


def write_kafka_exporter(book: Book, page: Page) -> None:
    nodes = page.judged.look.layout.nodes
    brokers = book.metric("kafka_brokers", "Number of brokers.")
    brokers.add(f"{brokers.name}{f'{{{page.alone[:-1]}}}' if page.alone else ''} {len(nodes)}")
    info = book.metric("kafka_broker_info", "A broker.")
    for node in nodes.values():
        info.add(f'{info.name}{{{page.alone}address="{page.shown(node.host)}:{node.port}",id="{node.id}"}} 1')
    _write_topics(book, page)
    _write_groups(book, page)


def _write_topics(book: Book, page: Page) -> None:
    look = page.judged.look
    count = book.metric("kafka_topic_partitions", "Partitions of the topic.")
    place = "kafka_topic_partition"
    current = book.metric(f"{place}_current_offset", "The end of the log.")
    oldest = book.metric(f"{place}_oldest_offset", "The start of the log.")
    replicated = _Replicated(book)
    for topic in look.layout.topics.values():
        count.add(f'{count.name}{{{page.alone}topic="{topic.name}"}} {len(topic.partitions)}')
        for part in topic.partitions:
            labels = f'{{{page.alone}partition="{part.place.partition}",topic="{topic.name}"}}'
            for metric, offset in ((current, look.ends.get(part.place)), (oldest, look.starts.get(part.place))):
                if offset is not None:
                    metric.add(f"{metric.name}{labels} {offset}")
            replicated.add(part, labels)
        book.pack_full()


class _Replicated:
    """What metadata says of a partition."""

    def __init__(self, book: Book) -> None:
        def metric(name: str, help_text: str) -> Metric:
            return book.metric(f"kafka_topic_partition_{name}", help_text)

        self.in_sync = metric("in_sync_replica", "Replicas in sync.")
        self.leader = metric("leader", "The leader's id.")
        self.preferred = metric("leader_is_preferred", "1 if the first replica leads.")
        self.replicas = metric("replicas", "Replicas.")
        self.lacking = metric("under_replicated_partition", "1 if a replica is out of sync.")

    def add(self, part: Partition, labels: str) -> None:
        self.in_sync.add(f"{self.in_sync.name}{labels} {len(part.in_sync)}")
        self.leader.add(f"{self.leader.name}{labels} {part.leader}")
        preferred = bool(part.replicas) and part.leader == part.replicas[0]
        self.preferred.add(f"{self.preferred.name}{labels} {preferred:d}")
        self.replicas.add(f"{self.replicas.name}{labels} {len(part.replicas)}")
        self.lacking.add(f"{self.lacking.name}{labels} {len(part.in_sync) < len(part.replicas):d}")


def _write_groups(book: Book, page: Page) -> None:
    metric = "kafka_consumergroup"
    members = book.metric(f"{metric}_members", "Members of the group.")
    current = book.metric(f"{metric}_current_offset", "The offset committed.")
    lag = book.metric(f"{metric}_lag", "Unread records.")
    current_sum = book.metric(f"{metric}_current_offset_sum", "The offsets committed, of all partitions.")
    lag_sum = book.metric(f"{metric}_lag_sum", "Unread records of all partitions.")
    for name, group in page.judged.verdicts.items():
        labels = f'{{{page.alone}consumergroup="{page.shown(name)}"'
        members.add(f"{members.name}{labels}}} {len(page.judged.group(name).members)}")
        sums: dict[str, tuple[int, int]] = {}
        for each, offset in page.committed(group):
            place = f'{labels},partition="{each.partition}",topic="{each.topic}"}}'
            current.add(f"{current.name}{place} {offset}")
            lag.add(f"{lag.name}{place} {each.current_lag}")
            offsets, lags = sums.get(each.topic, (0, 0))
            sums[each.topic] = offsets + offset, lags + each.current_lag
        for topic, (offsets, lags) in sums.items():
            place = f'{labels},topic="{topic}"}}'
            current_sum.add(f"{current_sum.name}{place} {offsets}")
            lag_sum.add(f"{lag_sum.name}{place} {lags}")
        book.pack_full()
