"""The names of kafka-lag-exporter, whose seconds are exact here."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.core.ids import TopicPartition
from moldau.monitor.judging import NOBODY
from moldau.monitor.rules import GroupVerdict
from moldau.monitor.sampling.groups import Member
from moldau.monitor.serving.metrics.book import Book
from moldau.monitor.serving.metrics.labels import Page

GROUP = "kafka_consumergroup_group"


def write_kafka_lag_exporter(book: Book, page: Page) -> None:
    _write_partitions(book, page)
    _write_groups(book, page)
    look = page.judged.look
    for metric, offsets in (
        (book.metric("kafka_partition_latest_offset", "The end of the log."), look.ends),
        (book.metric("kafka_partition_earliest_offset", "The start of the log."), look.starts),
    ):
        for place, offset in sorted(offsets.items()):
            labels = f'cluster_name="{page.cluster}",topic="{place.topic}",partition="{place.partition}"'
            metric.add(f"{metric.name}{{{labels}}} {offset}")


def _write_partitions(book: Book, page: Page) -> None:
    committed = book.metric(f"{GROUP}_offset", "The offset committed.")
    lag = book.metric(f"{GROUP}_lag", "Unread records.")
    waiting = "How long the first unread record has been waiting, by its timestamp."
    seconds = book.metric(f"{GROUP}_lag_seconds", waiting)
    topic_sum = book.metric(f"{GROUP}_topic_sum_lag", "Unread records of the topic.")
    for group in page.judged.verdicts.values():
        owners = _owners(page, group)
        labels = f'{{cluster_name="{page.cluster}",group="{page.shown(group.group)}"'
        sums: dict[str, int] = {}
        for each, offset in page.committed(group):
            owner = owners.get((each.topic, each.partition), NOBODY)
            place = (
                f'{labels},topic="{each.topic}",partition="{each.partition}",member_host="{page.shown(owner.host)}",'
                f'consumer_id="{page.shown(owner.id)}",client_id="{page.shown(owner.client_id)}"}}'
            )
            committed.add(f"{committed.name}{place} {offset}")
            lag.add(f"{lag.name}{place} {each.current_lag}")
            if each.lag_seconds is not None:
                seconds.add(f"{seconds.name}{place} {each.lag_seconds}")
            sums[each.topic] = sums.get(each.topic, 0) + each.current_lag
        for topic, total in sums.items():
            topic_sum.add(f'{topic_sum.name}{labels},topic="{topic}"}} {total}')
        book.pack_full()


def _owners(page: Page, group: GroupVerdict) -> Mapping[tuple[str, int] | TopicPartition, Member]:
    return {place: member for member in page.judged.group(group.group).members for place in member.assigned}


def _write_groups(book: Book, page: Page) -> None:
    max_lag = book.metric(f"{GROUP}_max_lag", "Unread records of the partition with most.")
    max_seconds = book.metric(f"{GROUP}_max_lag_seconds", "The longest wait of a partition.")
    sum_lag = book.metric(f"{GROUP}_sum_lag", "Unread records.")
    for group in page.judged.verdicts.values():
        labels = f'{{cluster_name="{page.cluster}",group="{page.shown(group.group)}"}}'
        max_lag.add(f"{max_lag.name}{labels} {group.maxlag.current_lag if group.maxlag else 0}")
        longest = group.lag_seconds
        if longest is not None:
            max_seconds.add(f"{max_seconds.name}{labels} {longest}")
        sum_lag.add(f"{sum_lag.name}{labels} {group.totallag}")
        book.pack_full()
