"""What a scrape of the lag monitor costs, for so many groups of three partitions: python -m bench.lag_monitor 10000"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import getpagesize
from typing import TypeVar

from moldau.client.cluster import Node
from moldau.core.clock import SystemClock
from moldau.core.ids import TopicPartition
from moldau.monitor.judging import Judged, Rules, judged
from moldau.monitor.rules import Commit
from moldau.monitor.sampling.groups import Member, SeenGroup, SeenGroups
from moldau.monitor.sampling.look import Look
from moldau.monitor.sampling.topics import Layout, Partition, Topic
from moldau.monitor.service import Monitor
from moldau.monitor.serving.metrics.pages import WRITERS, Pages, zipped
from moldau.monitor.settings import Settings
from moldau.monitor.watching import Watch
from moldau.monitor.windows import Windows

T = TypeVar("T")
TOPICS_MAX, PARTITIONS, BROKERS, INTERVALS = 1_000, 3, (1, 2, 3), 10
NODES = {number: Node(number, f"kafka-{number}.example", 9092) for number in BROKERS}


def timed(what: str, do: Callable[[], T]) -> T:
    began_s = time.perf_counter()
    found = do()
    say(f"{what:<40} {time.perf_counter() - began_s:8.3f} s   {memory_mb():6.0f} MB of memory")
    return found


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def memory_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize() / 1e6


def topic_of(number: int) -> Topic:
    name = f"orders-{number:05d}"
    places = (TopicPartition(name, partition) for partition in range(PARTITIONS))
    return Topic(name, number.to_bytes(16), False, tuple(Partition(place, 1, BROKERS, BROKERS) for place in places))


def group_of(number: int, topic: Topic) -> SeenGroup:
    name = f"billing-service-{number:05d}"
    members = tuple(
        Member(
            f"consumer-{name}-0b2f7a0e-9f0f-4f5e-8f5a-{number:012d}", f"client-{each}", f"/10.0.{each}.7", (part.place,)
        )
        for each, part in enumerate(topic.partitions)
    )
    committed = {part.place: 999_000 + number for part in topic.partitions}
    return SeenGroup(name, "classic", "Stable", "consumer", members, committed, 1, "range")


def state_of(count: int) -> Judged:
    now_ms = time.time_ns() // 1_000_000
    topics = [topic_of(number) for number in range(min(count, TOPICS_MAX))]
    groups = [group_of(number, topics[number % len(topics)]) for number in range(count)]
    windows = Windows(INTERVALS)
    for group in groups:
        for place, offset in (group.committed or {}).items():
            for each in range(INTERVALS):
                commit = Commit(offset - INTERVALS + each, now_ms - (INTERVALS - each) * 1_000, lag=5)
                windows.add(group.name, place, commit)
    ends = {part.place: 1_000_000 + count for topic in topics for part in topic.partitions}
    times = {unread: now_ms - 12_345 for group in groups for unread in (group.committed or {}).items()}
    layout = Layout(NODES, 1, "bench", {topic.name: topic for topic in topics})
    seen = SeenGroups({group.name: group for group in groups})
    look = Look(now_ms, layout, dict.fromkeys(ends, 17), ends, seen, (), True, True, times, ())
    committed = {group.name: group.committed or {} for group in groups}
    return timed("judging a look", lambda: judged("main", look, windows, committed, Rules(intervals=INTERVALS)))


def main(count: int) -> None:
    state = state_of(count)
    for families in (tuple(WRITERS), *((family,) for family in WRITERS)):
        clock = SystemClock()
        watch = Watch("main", lambda: (_ for _ in ()).throw(OSError), clock, Rules(), 10.0, state=state)
        pages = Pages(Monitor(Settings(metrics=families), clock, {"main": watch}))
        say(f"\n{count} groups, {', '.join(families)}")
        timed("written, once for each look", lambda pages=pages, watch=watch: pages.written(watch))
        plain = timed("a scrape", lambda pages=pages: sum(map(len, pages.text())))
        packed = timed("a scrape with gzip", lambda pages=pages: sum(map(len, zipped(pages.text()))))
        say(f"{plain / 1e6:.1f} MB of text, {packed / 1e6:.1f} MB with gzip")


if __name__ == "__main__":
    main(int(sys.argv[1]))
