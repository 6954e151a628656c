"""Topics: copies, what acknowledgements promise, numbers of partitions, and segments against retention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.cli.doctor.cluster.facts import (
    MIN_IN_SYNC,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_MS,
    TIMESTAMP_TYPE,
    UNCLEAN,
    ClusterFacts,
    Partition,
    Topic,
)
from moldau.cli.doctor.cluster.partitions import replicas_document
from moldau.cli.doctor.findings import Finding, Severity, counted, listed, ok
from moldau.cli.units import duration_text, size_text
from moldau.core.ids import TopicPartition

REPLICAS_WANTED = 3
PARTITION_BYTES_PER_DAY = 6 * 10**9
DAY_S = 86_400
SEGMENTS_MAX = 1_000  # of one partition: three to five files each
ROLL_MS_MIN = 600_000
FUTURE_MS = 60_000
PARTITIONS_IN_COMMAND_MAX = 12


def check_replication(facts: ClusterFacts) -> Iterator[Finding]:
    brokers = sorted(facts.brokers)
    if len(brokers) < 2:
        if facts.topics:
            yield Finding(
                Severity.NOTE,
                "replication-factor",
                "topics",
                "the cluster has one broker, so that every topic has one copy",
                "the loss of its disk loses everything; fine for development",
                ("moldau start --brokers 3     # on one machine; several machines: docs/guides/clusters.md",),
            )
        return
    single = [each for each in facts.topics.values() if not each.is_internal and each.replication_factor == 1]
    if single:
        yield Finding(
            Severity.WARNING,
            "replication-factor",
            listed([each.name for each in single]),
            f"{counted(len(single), 'topic')} with a single replica",
            "when its broker is down nobody reads or writes there, and when its disk is lost so are the records",
            more_replicas(single[0], brokers),
        )
    else:
        yield ok("replication-factor", "topics", "each has several replicas")
    wanted = min(REPLICAS_WANTED, len(brokers))
    few = [each for each in facts.topics.values() if each.is_internal and each.replication_factor < wanted]
    for topic in few:
        yield Finding(
            Severity.WARNING,
            "internal-replication",
            topic.name,
            f"{counted(topic.replication_factor, 'replica')}, wanted {wanted}",
            "it holds what groups have read and what became of transactions: without it consumers and transactional"
            " producers stand still",
            more_replicas(topic, brokers),
        )
    if not few:
        yield ok("internal-replication", "internal topics", f"each has at least {wanted} replicas")


def more_replicas(topic: Topic, brokers: Sequence[int]) -> tuple[str, ...]:
    """Keeps the replicas that there are, and their order: the leader stays."""
    wanted = min(REPLICAS_WANTED, len(brokers))
    places: dict[TopicPartition, list[int]] = {}
    for at, each in enumerate(topic.partitions[:PARTITIONS_IN_COMMAND_MAX]):
        others = [*brokers[at % len(brokers) :], *brokers[: at % len(brokers)]]
        added = [broker for broker in others if broker not in each.replicas]
        places[each.place] = [*each.replicas, *added[: max(0, wanted - len(each.replicas))]]
    left = len(topic.partitions) - len(places)
    return (
        f"echo '{replicas_document(places)}' > replicas.json" + (f"     # and {left} more partitions" if left else ""),
        "moldau reassign-partitions --execute --reassignment-json-file replicas.json --throttle 50000000",
    )


def check_min_in_sync(facts: ClusterFacts) -> Iterator[Finding]:
    replicated = [each for each in facts.topics.values() if each.replication_factor > 1 and each.number(MIN_IN_SYNC)]
    all_needed = [each for each in replicated if (each.number(MIN_IN_SYNC) or 0) >= each.replication_factor]
    one_enough = [each for each in replicated if each.replication_factor >= 3 and each.number(MIN_IN_SYNC) == 1]
    if all_needed:
        first = all_needed[0]
        yield Finding(
            Severity.WARNING,
            "min-insync-replicas",
            listed([each.name for each in all_needed]),
            f"{counted(len(all_needed), 'topic')} with min.insync.replicas as large as the replication factor",
            "the loss, or restart, of any one broker stops writes with acks=all",
            (f"moldau topics alter {first.name} --config min.insync.replicas={first.replication_factor - 1}",),
        )
    if one_enough:
        yield Finding(
            Severity.WARNING,
            "min-insync-replicas",
            listed([each.name for each in one_enough]),
            f"{counted(len(one_enough), 'topic')} with {REPLICAS_WANTED} replicas or more and min.insync.replicas=1",
            "acks=all is answered although the leader alone has the record: when that broker is lost, so is the record",
            (f"moldau topics alter {one_enough[0].name} --config min.insync.replicas=2",),
        )
    if replicated and not (all_needed or one_enough):
        yield ok("min-insync-replicas", "topics", "one replica may be lost without stopping writes or losing records")


def check_unclean_election(facts: ClusterFacts) -> Iterator[Finding]:
    unclean = [each for each in facts.topics.values() if each.configs.get(UNCLEAN) == "true"]
    if not unclean:
        if any(UNCLEAN in each.configs for each in facts.topics.values()):
            yield ok("unclean-election", "topics", "no replica that lacks records is elected by itself")
        return
    yield Finding(
        Severity.WARNING,
        "unclean-election",
        listed([each.name for each in unclean]),
        f"{counted(len(unclean), 'topic')} with {UNCLEAN}=true",
        "when no replica in sync is left, one that lacks acknowledged records leads, and they are gone everywhere",
        (f"moldau topics alter {unclean[0].name} --config {UNCLEAN}=false",),
    )


def check_partition_counts(facts: ClusterFacts) -> Iterator[Finding]:
    brokers = len(facts.brokers.keys() | facts.replica_ids)  # one that is down comes back
    if brokers < 2:
        return
    uneven = [
        each
        for each in facts.topics.values()
        if not each.is_internal and len(each.partitions) > 1 and len(each.partitions) % brokers
    ]
    if not uneven:
        yield ok("partition-count", "topics", f"with several partitions, these are a multiple of {brokers} brokers")
        return
    first = uneven[0]
    wanted = -(-len(first.partitions) // brokers) * brokers
    yield Finding(
        Severity.NOTE,
        "partition-count",
        listed([f"{each.name} ({len(each.partitions)})" for each in uneven]),
        f"numbers of partitions that are no multiple of {brokers} brokers",
        "some brokers lead one more than others, and get that much more of the topic's traffic. More partitions"
        " send keys elsewhere: their new records are in another partition than their old ones",
        (f"moldau topics alter {first.name} --partitions {wanted}     # without keys, or before there is data",),
    )


def check_partition_traffic(facts: ClusterFacts) -> Iterator[Finding]:
    busy = [
        each
        for each in facts.partitions()
        if each.bytes_per_s is not None and each.bytes_per_s * DAY_S > PARTITION_BYTES_PER_DAY
    ]
    if not busy:
        if any(each.bytes_per_s for each in facts.partitions()):
            yield ok(
                "partition-traffic", "partitions", f"each takes less than {size_text(PARTITION_BYTES_PER_DAY)} a day"
            )
        return
    busiest = max(busy, key=lambda each: each.bytes_per_s or 0.0)
    daily = (busiest.bytes_per_s or 0.0) * DAY_S
    topic = facts.topics[busiest.place.topic]
    whole = (busiest.bytes_per_s or 0.0) * len(topic.partitions)
    rate = f"{size_text(busiest.bytes_per_s or 0.0)}/s"
    yield Finding(
        Severity.WARNING,
        "partition-traffic",
        listed([str(each.place) for each in busy]),
        f"{counted(len(busy), 'partition')} with more than {size_text(PARTITION_BYTES_PER_DAY)} a day;"
        f" {busiest.place} has {size_text(daily)}",
        "large partitions take long to move, to recover and to catch up with, and one consumer reads each alone",
        (
            f"moldau plan --throughput {size_text(whole).replace(' ', '')}/s     # how many {topic.name} needs;"
            f" one partition has {rate}",
        ),
    )


def check_segments(facts: ClusterFacts) -> Iterator[Finding]:
    slow: list[tuple[Topic, float, float]] = []
    small: list[tuple[Topic, int]] = []
    for topic in facts.topics.values():
        if topic.is_internal or not topic.deletes:
            continue
        found = _rolled_after(topic)
        if found is not None:
            slow.append((topic, *found))
        many = max((_segments(topic, each) for each in topic.partitions), default=0)
        if many > SEGMENTS_MAX:
            small.append((topic, many))
    if slow:
        topic, roll_ms, retention_ms = slow[0]
        yield Finding(
            Severity.WARNING,
            "segment-roll",
            listed([each.name for each, _, _ in slow]),
            f"{topic.name} begins a new segment every {duration_text(roll_ms)}, and keeps records for"
            f" {duration_text(retention_ms)}",
            "only whole segments are deleted, by their newest record: the oldest stay longer than retention says",
            (f"moldau topics alter {topic.name} --config segment.ms={max(1, int(retention_ms // 4))}",),
        )
    else:
        yield ok("segment-roll", "topics", "segments are rolled well within retention")
    if small:
        topic, many = small[0]
        yield Finding(
            Severity.WARNING,
            "segment-count",
            listed([each.name for each, _ in small]),
            f"a partition of {topic.name} has, or will have, about {many:,} segments",
            "each is three to five files, opened by readers and looked at by retention; a start after a crash is slow",
            (f"moldau topics alter {topic.name} --config segment.bytes=1073741824",),
        )


def _rolled_after(topic: Topic) -> tuple[float, float] | None:
    """Milliseconds until a segment is rolled, and of retention, if the former is the longer one."""
    retention_ms, segment_ms, segment_bytes = map(topic.number, (RETENTION_MS, SEGMENT_MS, SEGMENT_BYTES))
    if retention_ms is None or retention_ms < 0 or segment_ms is None or segment_bytes is None:
        return None
    rates = [each.bytes_per_s for each in topic.partitions if each.bytes_per_s]
    if not rates:  # nothing comes, or nobody knows: nothing to complain of
        return None
    roll_ms = min(segment_ms, segment_bytes / min(rates) * 1_000)
    return (roll_ms, retention_ms) if roll_ms > retention_ms else None


def _segments(topic: Topic, partition: Partition) -> int:
    """How many a partition has, or has once retention is filled."""
    segment_bytes, retention_ms, retention_bytes = map(topic.number, (SEGMENT_BYTES, RETENTION_MS, RETENTION_BYTES))
    if not segment_bytes:
        return 0
    kept = partition.size_bytes or 0
    if partition.bytes_per_s and retention_ms is not None and retention_ms > 0:
        kept = max(kept, round(partition.bytes_per_s * retention_ms / 1_000))
    if retention_bytes is not None and retention_bytes >= 0:
        kept = min(kept, retention_bytes)
    return kept // segment_bytes


def check_endless_retention(facts: ClusterFacts) -> Iterator[Finding]:
    endless = [
        each
        for each in facts.topics.values()
        if not each.is_internal
        and each.deletes
        and each.number(RETENTION_MS) == -1
        and each.number(RETENTION_BYTES) == -1
    ]
    if endless:
        yield Finding(
            Severity.NOTE,
            "endless-retention",
            listed([each.name for each in endless]),
            f"{counted(len(endless), 'topic')} whose records are never deleted",
            "they grow until the disk is full",
            (f"moldau topics alter {endless[0].name} --config retention.ms=604800000     # or retention.bytes",),
        )


def check_future_records(facts: ClusterFacts) -> Iterator[Finding]:
    for topic in facts.topics.values():
        ahead = [each for each in topic.partitions if each.newest_ms and each.newest_ms > facts.now_ms + FUTURE_MS]
        if not ahead:
            continue
        by_broker = topic.configs.get(TIMESTAMP_TYPE) == "LogAppendTime"
        most_ms = max(each.newest_ms or 0 for each in ahead) - facts.now_ms
        whose = (
            "a broker's clock is that much ahead of this machine's" if by_broker else "the clock of a producer is wrong"
        )
        yield Finding(
            Severity.WARNING,
            "future-records",
            listed([str(each.place) for each in ahead]),
            f"records with timestamps up to {duration_text(most_ms)} in the future",
            f"{whose}, or what makes timestamps; a segment with such a record is kept until that time has come, and"
            " retention",
            (
                "chronyc tracking     # on the brokers" if by_broker else "chronyc tracking     # on the producers",
                f"moldau topics alter {topic.name} --config message.timestamp.after.max.ms=60000",
            ),
        )
