"""Partitions: replicas that are missing, leaders that are not where they should be, and how all of it is spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from moldau.cli.doctor.cluster.facts import MIN_IN_SYNC, ClusterFacts, Partition
from moldau.cli.doctor.cluster.traffic import by_broker
from moldau.cli.doctor.findings import Finding, Severity, counted, listed, ok
from moldau.core.ids import TopicPartition

SKEW_MAX = 1.3  # of the mean; less is chance
SKEW_LEAST = 2  # one more than the mean is no skew, whatever its share is
REPLICAS_PER_BROKER_MAX = 4_000
MISPLACED_SHARE_MAX = 0.1  # of all partitions, as leader.imbalance.per.broker.percentage has it
TOPICS_IN_COMMAND_MAX = 5
ELECTION = "moldau leader-election --election-type preferred --all-topic-partitions"


def check_offline_partitions(facts: ClusterFacts) -> Iterator[Finding]:
    offline = [each for each in facts.partitions() if not each.has_leader]
    if not offline:
        yield ok("offline-partitions", "partitions", "each has a leader")
        return
    wanted = sorted({broker for each in offline for broker in each.in_sync or each.replicas} - facts.brokers.keys())
    yield Finding(
        Severity.PROBLEM,
        "offline-partitions",
        _places(offline),
        f"{counted(len(offline), 'partition')} without a leader",
        "nobody can write to them or read from them",
        (
            *(f"start broker {each}: it was in sync" for each in wanted),
            "moldau topics --describe --unavailable-partitions",
            "last resort, it loses what other replicas lack: moldau leader-election --election-type unclean"
            f" --topic {offline[0].place.topic} --partition {offline[0].place.partition}",
        ),
    )


def _places(partitions: Sequence[Partition]) -> str:
    return listed([str(each.place) for each in partitions])


def check_in_sync(facts: ClusterFacts) -> Iterator[Finding]:
    under = [each for each in facts.partitions() if each.has_leader and each.is_under_replicated]
    moving = [each for each in under if each.place in facts.moving]
    stuck = [each for each in under if each.place not in facts.moving]
    if moving:
        yield Finding(
            Severity.NOTE,
            "under-replicated",
            _places(moving),
            f"{counted(len(moving), 'partition')} being given other replicas",
            "they are copied; that takes the network and the disks",
            ("moldau reassign-partitions --list",),
        )
    if stuck:
        behind = Counter(broker for each in stuck for broker in set(each.replicas) - set(each.in_sync))
        yield Finding(
            Severity.PROBLEM,
            "under-replicated",
            _places(stuck),
            f"{counted(len(stuck), 'partition')} with fewer replicas in sync than they have; out of sync:"
            f" {_by_broker(behind)}",
            "the next loss may take the last copy of acknowledged records",
            (
                *(f"the log of broker {broker}: is it there, is its disk full or slow?" for broker in sorted(behind)),
                "moldau topics --describe --under-replicated-partitions",
            ),
        )
    elif not moving:
        yield ok("under-replicated", "partitions", "all replicas are in sync")
    yield from _under_min_in_sync(facts)


def _by_broker(counts: Mapping[int, int]) -> str:
    return listed([f"broker {broker} ({count})" for broker, count in sorted(counts.items())])


def _under_min_in_sync(facts: ClusterFacts) -> Iterator[Finding]:
    under = [
        each
        for topic in facts.topics.values()
        for each in topic.partitions
        if each.has_leader and len(each.in_sync) < (topic.number(MIN_IN_SYNC) or 1)
    ]
    if under:
        yield Finding(
            Severity.PROBLEM,
            "under-min-isr",
            _places(under),
            f"{counted(len(under), 'partition')} with fewer replicas in sync than min.insync.replicas",
            "producers with acks=all are refused with NOT_ENOUGH_REPLICAS; reading goes on",
            (
                "bring the missing replicas back",
                "or, to write meanwhile with fewer copies:"
                f" moldau topics alter {under[0].place.topic} --config min.insync.replicas="
                f"{max(1, len(under[0].in_sync))}",
            ),
        )
    else:
        yield ok("under-min-isr", "partitions", "each has as many replicas in sync as min.insync.replicas asks for")


def check_preferred_leaders(facts: ClusterFacts) -> Iterator[Finding]:
    led = [each for each in facts.partitions() if each.has_leader and each.replicas]
    misplaced = [each for each in led if each.leader != each.replicas[0] and each.replicas[0] in each.in_sync]
    if not misplaced:
        yield ok("preferred-leaders", "leaders", "preferred replicas lead wherever they are in sync")
        return
    share = len(misplaced) / len(led)
    yield Finding(
        Severity.WARNING if share > MISPLACED_SHARE_MAX else Severity.NOTE,
        "preferred-leaders",
        _places(misplaced),
        f"{counted(len(misplaced), 'partition')} of {len(led)} led by another replica than the preferred one",
        "after a restart its leaders stay where they went: some brokers have the work of others",
        (ELECTION,),
    )


def check_spread(facts: ClusterFacts) -> Iterator[Finding]:
    brokers = sorted(facts.brokers)
    if len(brokers) < 2:
        return
    led = Counter(each.leader for each in facts.partitions() if each.has_leader)
    preferred = Counter(each.replicas[0] for each in facts.partitions() if each.replicas)
    replicas = Counter(replica for each in facts.partitions() for replica in each.replicas)
    topics = [topic.name for topic in facts.topics.values() if not topic.is_internal]
    move = reassignment(topics, brokers)
    is_even_by_election = not _is_skewed(preferred, brokers)
    yield _spread(
        "leader-skew",
        "leaders",
        led,
        brokers=brokers,
        why="who leads has the work: it takes all that is written and gives all that is read",
        do=(ELECTION,) if is_even_by_election else move,
    )
    yield _spread(
        "replica-skew",
        "replicas",
        replicas,
        brokers=brokers,
        why="disks and the work of following are uneven; a broker that is new gets no partitions by itself",
        do=move,
    )


def _is_skewed(counts: Mapping[int, int], brokers: Sequence[int]) -> bool:
    """One has much more than the mean, or nothing where the mean is some."""
    numbers = [counts.get(each, 0) for each in brokers]
    mean = sum(numbers) / len(numbers)
    most, least = max(numbers), min(numbers)
    return (most > mean * SKEW_MAX and most - mean >= SKEW_LEAST) or (least == 0 and mean >= SKEW_LEAST)


def _spread(
    check: str, what: str, counts: Mapping[int, int], *, brokers: Sequence[int], why: str, do: tuple[str, ...]
) -> Finding:
    seen = f"{what} by broker: " + ", ".join(f"{each} has {counts.get(each, 0):,}" for each in brokers)
    if not _is_skewed(counts, brokers):
        return ok(check, what, seen)
    return Finding(Severity.WARNING, check, what, seen, why, do)


def reassignment(topics: Sequence[str], brokers: Sequence[int]) -> tuple[str, ...]:
    """The commands that spread topics anew over brokers."""
    named = ",".join(f'{{"topic":"{each}"}}' for each in topics[:TOPICS_IN_COMMAND_MAX])
    more = ",…" if len(topics) > TOPICS_IN_COMMAND_MAX else ""
    ids = ",".join(map(str, brokers))
    return (
        f'echo \'{{"version":1,"topics":[{named}{more}]}}\' > topics.json',
        f"moldau reassign-partitions --generate --topics-to-move-json-file topics.json --broker-list {ids}",
        "moldau reassign-partitions --execute --reassignment-json-file plan.json --throttle 50000000"
        "     # plan.json: the proposal",
        ELECTION,
    )


def check_replicas_per_broker(facts: ClusterFacts) -> Iterator[Finding]:
    many = {broker: len(held) for broker, held in by_broker(facts).items() if len(held) > REPLICAS_PER_BROKER_MAX}
    for broker, count in sorted(many.items()):
        yield Finding(
            Severity.WARNING,
            "replicas-per-broker",
            f"broker {broker}",
            f"{count:,} replicas, advised are at most {REPLICAS_PER_BROKER_MAX:,}",
            "each takes memory, files and a place in every election; after a crash they are all opened again",
            ("fewer partitions for topics with little traffic, or more brokers",),
        )
    if not many:
        yield ok("replicas-per-broker", "brokers", f"none has more than {REPLICAS_PER_BROKER_MAX:,} replicas")


def replicas_document(places: Mapping[TopicPartition, Sequence[int]]) -> str:
    """What `reassign-partitions --execute` reads."""
    rows = ",".join(
        f'{{"topic":"{place.topic}","partition":{place.partition},"replicas":[{",".join(map(str, replicas))}]}}'
        for place, replicas in places.items()
    )
    return f'{{"version":1,"partitions":[{rows}]}}'
