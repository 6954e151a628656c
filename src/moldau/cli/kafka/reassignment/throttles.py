"""Replication that reassignments cause is limited by configurations of topics and brokers; they must go again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from moldau.cli.kafka.reassignment.asking import BROKER_RESOURCE, TOPIC_RESOURCE, Ongoing, change_configs
from moldau.cli.kafka.reassignment.documents import Assignment, Plan
from moldau.client.cluster import Cluster
from moldau.core.ids import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Move:
    """Of one partition: the brokers that have it, and those that get it."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = Mapping[TopicPartition, Move]


def moves_of(active: Ongoing, proposed: Assignment, current: Assignment) -> Moves:
    """Those that go on, too; a partition on its way still comes from where it was before."""
    found: dict[TopicPartition, Move] = {}
    for place, each in active.items():
        adding = frozenset(each.adding_replicas)
        found[place] = Move(frozenset(each.replicas) - adding, adding)
    for place, replicas in proposed.items():
        sources = found[place].sources if place in found else frozenset(current[place])
        found[place] = Move(sources, frozenset(replicas) - sources)
    return found


def throttle_replication(client: Cluster, moves: Moves, rate: int) -> None:
    changes: dict[tuple[int, str], dict[str, str | None]] = {}
    for topic in sorted({place.topic for place in moves}):
        own = {place.partition: move for place, move in moves.items() if place.topic == topic}
        changes[TOPIC_RESOURCE, topic] = {
            LEADER_REPLICAS: _named((index, move.sources) for index, move in own.items()),
            FOLLOWER_REPLICAS: _named((index, move.destinations) for index, move in own.items()),
        }
    brokers = {each for move in moves.values() for each in move.sources | move.destinations}
    for broker_id in sorted(brokers):
        changes[BROKER_RESOURCE, str(broker_id)] = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    change_configs(client, changes)
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def throttle_log_dirs(client: Cluster, brokers: Iterable[int], rate: int) -> None:
    change_configs(client, {(BROKER_RESOURCE, str(each)): {LOG_DIR_RATE: str(rate)} for each in sorted(brokers)})
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def _named(replicas: Iterable[tuple[int, Collection[int]]]) -> str:
    return ",".join(sorted(f"{partition}:{broker_id}" for partition, brokers in replicas for broker_id in brokers))


def clear_throttles(client: Cluster, plan: Plan) -> None:
    """All of them: nobody knows any more which brokers had a part in it."""
    brokers = sorted(client.nodes().keys() | {each for _, replicas in plan.partitions for each in replicas})
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {','.join(map(str, brokers))}")
    change_configs(
        client,
        {(BROKER_RESOURCE, str(each)): dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)) for each in brokers},
    )
    print(f"Clearing topic-level throttles on topic{_s(plan.topics)} {','.join(plan.topics)}")
    change_configs(
        client,
        {(TOPIC_RESOURCE, each): dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS)) for each in plan.topics},
    )


def _s(values: Collection[object]) -> str:
    return "" if len(values) == 1 else "s"
