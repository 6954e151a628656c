"""Which brokers hold the replicas of new partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from math import lcm
from typing import NamedTuple, TypeVar

import msgspec

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage

T = TypeVar("T")


class Unplaceable(msgspec.Struct, frozen=True):
    """Why there is no placement, in Kafka's words."""

    message: str


def place(
    image: ClusterImage, *, partitions: int, replication_factor: int, first_partition: int = 0, start: int = 0
) -> list[PartitionImage] | Unplaceable:
    """New partitions, leaders and followers spread evenly over brokers and racks.

    The first replicas go round all brokers from `start` on, so that topics with one partition don't all have the same
    leader; followers step by one more each round, so that the partitions of one leader have different followers.
    """
    registered = image.brokers.values()
    refusal = _refuse(registered, replication_factor)
    if refusal is not None:
        return refusal
    racks = [_Rack(*split) for split in _by_rack(registered)]
    leaders = list(_in_turn([rack.active for rack in racks]))
    first = start + first_partition
    placed: list[PartitionImage] = []
    # Placements repeat, and a partition's image never changes: thousands of partitions share a few objects.
    period = len(leaders) * (1 if replication_factor == 1 else lcm(*_cycles(racks)))
    made: dict[tuple[int, ...], PartitionImage] = {}
    for at in range(first, first + min(partitions, period)):
        replicas = _replicas(racks, leaders, replication_factor, at)
        if replicas not in made:
            made[replicas] = new_partition(image, replicas)
        placed.append(made[replicas])
    return [placed[index % period] for index in range(partitions)]


def _cycles(racks: Sequence[_Rack]) -> Iterator[int]:
    """After how many turns each part of a placement is the same again."""
    yield max(1, len(racks) - 1)
    for rack in racks:
        yield from (max(1, each) for each in (len(rack.active), len(rack.active) - 1, len(rack.inactive)))


def leader_position(image: ClusterImage, broker_id: int) -> int:
    """From where on partitions are placed so that those of a topic go on after the first one, which is here."""
    leaders = list(_in_turn([active for active, _ in _by_rack(image.brokers.values())]))
    return leaders.index(broker_id) if broker_id in leaders else 0


def _refuse(registered: Collection[BrokerImage], replication_factor: int) -> Unplaceable | None:
    """The checks, their order and their words are Kafka 4.3's; nothing is cordoned here."""
    if registered and not any(broker.is_active for broker in registered):
        if all(broker.fenced for broker in registered):
            return Unplaceable("All brokers are currently fenced, or have all their log directories cordoned.")
        return Unplaceable("All brokers are currently fenced or in controlled shutdown.")
    if replication_factor > len(registered):
        return Unplaceable(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(registered)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    return None


def new_partition(image: ClusterImage, replicas: Sequence[int]) -> PartitionImage:
    """A partition whose active replicas are in sync, the first of them leading."""
    isr = tuple(each for each in replicas if each in image.brokers and image.brokers[each].is_active)
    return PartitionImage(replicas=tuple(replicas), isr=isr, leader=isr[0])


class _Rack(NamedTuple):
    active: list[int]
    inactive: list[int]

    def others(self, leader: int, turn: int) -> Iterator[int]:
        """Its brokers but the leader, another one first each turn; those that can't serve now come last."""
        count, after = len(self.active), 0
        if leader in self.active:
            count, after = count - 1, self.active.index(leader) + 1
        for step in range(count):
            yield self.active[(after + (step + turn) % count) % len(self.active)]
        for step in range(len(self.inactive)):
            yield self.inactive[(step + turn) % len(self.inactive)]


def _by_rack(brokers: Iterable[BrokerImage]) -> list[tuple[list[int], list[int]]]:
    racks: dict[str | None, tuple[list[int], list[int]]] = {}
    for broker in sorted(brokers, key=lambda each: each.id):
        active, inactive = racks.setdefault(broker.rack, ([], []))
        (active if broker.is_active else inactive).append(broker.id)
    return [racks[rack] for rack in sorted(racks, key=lambda each: each or "")]


def _replicas(racks: Sequence[_Rack], leaders: Sequence[int], count: int, at: int) -> tuple[int, ...]:
    """The leader is an active broker; followers come from other racks in turn, and from its own when each has one."""
    turn, leader = at // len(leaders), leaders[at % len(leaders)]
    if count == 1:
        return (leader,)
    home = next(number for number, rack in enumerate(racks) if leader in rack.active)
    away = _rotated([*racks[home + 1 :], *racks[:home]], turn)
    # Leaders of one rack take turns in the others, too.
    step = turn + racks[home].active.index(leader)
    order = _in_turn([*(rack.others(leader, step) for rack in away), racks[home].others(leader, turn)])
    return (leader, *islice(order, count - 1))


def _in_turn(lists: Sequence[Iterable[int]]) -> Iterator[int]:
    return (each for each in chain.from_iterable(zip_longest(*lists)) if each is not None)


def _rotated(items: Sequence[T], by: int) -> list[T]:
    start = by % len(items) if items else 0
    return [*items[start:], *items[:start]]
