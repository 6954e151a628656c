"""KMinion's names. Its end-to-end metrics are of a topic that it writes to, which a monitor that only looks has not."""

from __future__ import annotations

from collections import Counter

import moldau
from moldau.core.exposition import COUNTER
from moldau.monitor.sampling.groups import SeenGroup
from moldau.monitor.serving.metrics.book import Book, Metric
from moldau.monitor.serving.metrics.labels import Page

CLUSTER = "kminion_kafka"
GROUP = f"{CLUSTER}_consumer_group"
STABLE, CONSUMER = "stable", "consumer"
UNKNOWN_POLICY = "N/A"


def write_kminion(book: Book, page: Page) -> None:
    _write_exporter(book, page)
    _write_brokers(book, page)
    _write_topics(book, page)
    _write_groups(book, page)
    _write_lags(book, page)


def _write_exporter(book: Book, page: Page) -> None:
    look = page.judged.look
    up = book.metric("kminion_exporter_up", "Whether nothing of the last look was refused; the version is Moldau's.")
    up.add(f'{up.name}{{{page.alone}version="{moldau.__version__}"}} {not look.problems:d}')
    name, help_text = "offset_consumer_records_consumed_total", "Records read of __consumer_offsets."
    read = book.metric(f"kminion_exporter_{name}", help_text, COUNTER)
    read.add(f"{read.name}{f'{{{page.alone[:-1]}}}' if page.alone else ''} {look.records_read}")


def _write_brokers(book: Book, page: Page) -> None:
    look = page.judged.look
    known, stock = look.layout, look.stock
    cluster = book.metric(f"{CLUSTER}_cluster_info", "The cluster.")
    cluster.add(
        f'{cluster.name}{{{page.alone}cluster_version="{stock.release}",broker_count="{len(known.nodes)}",'
        f'controller_id="{known.controller_id}",cluster_id="{page.shown(known.cluster_id or "")}"}} 1'
    )
    info = book.metric(f"{CLUSTER}_broker_info", "A broker.")
    size = book.metric(f"{CLUSTER}_broker_log_dir_size_total_bytes", "What the broker's replicas take.")
    used: dict[int, int] = {}
    for log_dir in stock.log_dirs:
        used[log_dir.broker] = used.get(log_dir.broker, 0) + log_dir.used_bytes
    for node in known.nodes.values():
        rack = page.shown(node.rack or "")
        labels = f'broker_id="{node.id}",address="{page.shown(node.host)}",port="{node.port}",rack_id="{rack}"'
        controls = "true" if node.id == known.controller_id else "false"
        info.add(f'{info.name}{{{page.alone}{labels},is_controller="{controls}"}} 1')
        if node.id in used:
            size.add(f"{size.name}{{{page.alone}{labels}}} {used[node.id]}")


def _write_topics(book: Book, page: Page) -> None:
    look = page.judged.look
    info = book.metric(f"{CLUSTER}_topic_info", "A topic.")
    size = book.metric(f"{CLUSTER}_topic_log_dir_size_total_bytes", "What the topic's replicas take.")
    sizes = look.stock.topic_bytes() if look.stock.has_all_dirs else {}
    marks = _marks(book)
    for topic in look.layout.topics.values():
        replicas = len(topic.partitions[0].replicas) if topic.partitions else -1
        policy = look.stock.cleanup_policies.get(topic.name) or UNKNOWN_POLICY
        labels = f'{{{page.alone}topic_name="{topic.name}"'
        info.add(
            f'{info.name}{labels},partition_count="{len(topic.partitions)}",replication_factor="{replicas}",'
            f'cleanup_policy="{page.shown(policy)}"}} 1'
        )
        if topic.name in sizes:
            size.add(f"{size.name}{labels}}} {sizes[topic.name]}")
        for (each, total), offsets in zip(marks, (look.ends, look.starts), strict=True):
            found = [(part.place.partition, offsets.get(part.place)) for part in topic.partitions]
            known = [(partition, offset) for partition, offset in found if offset is not None]
            for partition, offset in known:
                each.add(f'{each.name}{labels},partition_id="{partition}"}} {offset}')
            if len(known) == len(found):  # a sum without some of them would jump
                total.add(f"{total.name}{labels}}} {sum(offset for _, offset in known)}")
        book.pack_full()


def _marks(book: Book) -> tuple[tuple[Metric, Metric], ...]:
    """Of high and low water marks: of a partition, and the sum of a topic."""
    return tuple(
        (
            book.metric(f"{CLUSTER}_topic_partition_{mark}_water_mark", help_text),
            book.metric(f"{CLUSTER}_topic_{mark}_water_mark_sum", f"{help_text[:-1]}, of all partitions."),
        )
        for mark, help_text in (("high", "The end of the log."), ("low", "The start of the log."))
    )


def _write_groups(book: Book, page: Page) -> None:
    info = book.metric(f"{GROUP}_info", "1 if the group is stable.")
    members = book.metric(f"{GROUP}_members", "Members of the group.")
    idle = book.metric(f"{GROUP}_empty_members", "Members without a partition.")
    topic_members = book.metric(f"{GROUP}_topic_members", "Members with partitions of the topic.")
    assigned = book.metric(f"{GROUP}_topic_assigned_partitions", "Partitions of the topic that members have.")
    commits = book.metric(f"{GROUP}_offset_commits_total", "Commits seen.", COUNTER)
    for name in page.judged.verdicts:
        seen = page.judged.group(name)
        labels = f'{{{page.alone}group_id="{page.shown(name)}"'
        info.add(
            f'{info.name}{labels},protocol="{page.shown(seen.assignor)}",protocol_type="{page.shown(seen.protocol_type)}",'
            f'state="{page.shown(seen.state)}",coordinator_id="{seen.coordinator}"}} {seen.state.lower() == STABLE:d}'
        )
        members.add(f"{members.name}{labels}}} {len(seen.members)}")
        if page.judged.look.reads_commits:
            commits.add(f"{commits.name}{labels}}} {page.judged.commits.get(name, 0)}")
        if seen.members and seen.protocol_type == CONSUMER:  # what members of Connect have is no partitions
            idle.add(f"{idle.name}{labels}}} {sum(not each.assigned for each in seen.members)}")
            for name_in_assignment, (count, partitions) in _assigned(seen).items():
                topic = page.shown(name_in_assignment)  # whatever the group's leader wrote there
                topic_members.add(f'{topic_members.name}{labels},topic_name="{topic}"}} {count}')
                assigned.add(f'{assigned.name}{labels},topic_name="{topic}"}} {partitions}')
        book.pack_full()


def _assigned(group: SeenGroup) -> dict[str, tuple[int, int]]:
    """Members and partitions by topic."""
    found: dict[str, tuple[int, int]] = {}
    for member in group.members:
        for topic, assigned in Counter(place.topic for place in member.assigned).items():
            count, partitions = found.get(topic, (0, 0))
            found[topic] = count + 1, partitions + assigned
    return dict(sorted(found.items()))


def _write_lags(book: Book, page: Page) -> None:
    part_lag = book.metric(f"{GROUP}_topic_partition_lag", "Unread records.")
    lag = book.metric(f"{GROUP}_topic_lag", "Unread records of the topic.")
    offset_sum = book.metric(f"{GROUP}_topic_offset_sum", "The offsets committed, of all partitions.")
    for group in page.judged.verdicts.values():
        labels = f'{{{page.alone}group_id="{page.shown(group.group)}"'
        sums: dict[str, tuple[int, int]] = {}
        for each, offset in page.committed(group):
            place = f'{labels},topic_name="{each.topic}",partition_id="{each.partition}"}}'
            part_lag.add(f"{part_lag.name}{place} {each.current_lag}")
            lags, offsets = sums.get(each.topic, (0, 0))
            sums[each.topic] = lags + each.current_lag, offsets + offset
        for topic, (lags, offsets) in sums.items():
            lag.add(f'{lag.name}{labels},topic_name="{topic}"}} {lags}')
            offset_sum.add(f'{offset_sum.name}{labels},topic_name="{topic}"}} {offsets}')
        book.pack_full()
