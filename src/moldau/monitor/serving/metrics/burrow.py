"""Burrow's names."""

from __future__ import annotations

from moldau.monitor.rules import WHOLE
from moldau.monitor.serving.metrics.book import Book
from moldau.monitor.serving.metrics.labels import Page


def write_burrow(book: Book, page: Page) -> None:
    consumer = "burrow_kafka_consumer"
    total = book.metric(f"{consumer}_lag_total", "The lag of all partitions.")
    status = book.metric(f"{consumer}_status", "1 OK, 2 WARN, 3 ERR, by the worst partition.")
    lag = book.metric(f"{consumer}_partition_lag", "Unread records.")
    current = book.metric(f"{consumer}_current_offset", "The newest offset committed.")
    part_status = book.metric("burrow_kafka_topic_partition_status", "1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND.")
    for group in page.judged.verdicts.values():
        labels = f'{{cluster="{page.cluster}",consumer_group="{page.shown(group.group)}"'
        total.add(f"{total.name}{labels}}} {group.totallag}")
        status.add(f"{status.name}{labels}}} {group.status:d}")
        for each in group.partitions:
            place = f'{labels},topic="{each.topic}",partition="{each.partition}"}}'
            lag.add(f"{lag.name}{place} {each.current_lag}")
            if each.complete == WHOLE and each.end is not None:
                current.add(f"{current.name}{place} {each.end.offset}")
                part_status.add(f"{part_status.name}{place} {each.status:d}")
        book.pack_full()
    ends = book.metric("burrow_kafka_topic_partition_offset", "The end of the log.")
    for at, end in sorted(page.judged.look.ends.items()):
        ends.add(f'{ends.name}{{cluster="{page.cluster}",topic="{at.topic}",partition="{at.partition}"}} {end}')
