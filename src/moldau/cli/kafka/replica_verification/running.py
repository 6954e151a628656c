"""`moldau replica-verification`: read all replicas of topics; whether they have the same, and how far they are."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from moldau.cli.failures import FAILED, CommandFailed
from moldau.cli.kafka.replica_verification.comparing import Compared, Fetched, compare
from moldau.cli.kafka.replica_verification.fetching import fetch, start_offsets
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster
from moldau.core.clock import SystemClock
from moldau.core.ids import TopicPartition

Answers: TypeAlias = dict[TopicPartition, Fetched]
ANSWER_S = 5.0


def run(options: Namespace) -> int:
    # A broker waits as long as it is asked to before it says that there is nothing new.
    options.timeout = max(options.timeout, options.max_wait_ms / 1_000 + ANSWER_S)
    with ExitStack() as opened:
        client = opened.enter_context(open_cluster(options))
        found = [
            each for each in client.metadata().topics if options.topics_include.fullmatch(each.name or "") is not None
        ]
        replicas = {
            TopicPartition(topic.name or "", each.partition_index): [*each.replica_nodes]
            for topic in found
            for each in topic.partitions
        }
        if not replicas:
            raise CommandFailed("No topics found: --topics-include leaves none, or there are none")
        offsets = start_offsets(client, replicas, options.time)
        brokers = sorted({broker_id for each in replicas.values() for broker_id in each})
        # Each has a client of its own, for all are asked at the same time.
        clients = {each: opened.enter_context(open_cluster(options)) for each in brokers}
        topic_ids = {each.name or "": bytes(each.topic_id) for each in found}
        print(f"{_now()}: verification process is started", flush=True)
        asked = Verification(clients, replicas, topic_ids, options.fetch_size, options.max_wait_ms)
        return verify(asked, offsets, report_interval_ms=options.report_interval_ms)


@dataclass(frozen=True, slots=True)
class Verification:
    clients: Mapping[int, Cluster]
    replicas: Mapping[TopicPartition, list[int]]
    topic_ids: Mapping[str, bytes]
    fetch_bytes: int
    max_wait_ms: int

    def fetched(self, pool: ThreadPoolExecutor, offsets: Mapping[TopicPartition, int]) -> dict[int, Answers]:
        """What each broker has from there on."""

        def ask(broker_id: int) -> Answers:
            own = {place: offset for place, offset in offsets.items() if broker_id in self.replicas[place]}
            return fetch(
                self.clients[broker_id],
                broker_id,
                own,
                self.topic_ids,
                fetch_bytes=self.fetch_bytes,
                max_wait_ms=self.max_wait_ms,
            )

        return dict(zip(self.clients, pool.map(ask, self.clients), strict=True))

    def compared(self, place: TopicPartition, offset: int, answers: Mapping[int, Answers]) -> Compared:
        return compare(place, offset, {each: answers[each].get(place, Fetched()) for each in self.replicas[place]})


def verify(asked: Verification, offsets: dict[TopicPartition, int], *, report_interval_ms: int) -> int:
    """For ever, unless replicas are torn apart."""
    reported_s = time.monotonic()
    with ThreadPoolExecutor(len(asked.clients)) as pool:
        while True:
            answers = asked.fetched(pool, offsets)
            found = {place: asked.compared(place, offset, answers) for place, offset in offsets.items()}
            for line in (line for each in found.values() for line in each.unequal):
                print(f"{_now()}: {line}", flush=True)
            if any(each.is_torn for each in found.values()):
                return FAILED
            if (time.monotonic() - reported_s) * 1_000 > report_interval_ms:
                reported_s = time.monotonic()
                _report(found)
            offsets = _rotated({place: each.next_offset for place, each in found.items()})


def _rotated(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Answers are limited as a whole, so it must not always be the same partitions that come first."""
    first, *rest = offsets
    return {place: offsets[place] for place in (*rest, first)}


def _report(found: Mapping[TopicPartition, Compared]) -> None:
    place = max(sorted(found), key=lambda each: found[each].lag)
    print(
        f"{_now()}: max lag is {found[place].lag} for partition {place} at offset {found[place].next_offset}"
        f" among {len(found)} partitions",
        flush=True,
    )


def _now() -> str:
    now_ms = SystemClock().now_ms()
    local = datetime.fromtimestamp(now_ms // 1_000, tz=UTC).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S},{now_ms % 1_000:03}"
