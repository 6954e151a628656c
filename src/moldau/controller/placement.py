"""Which brokers hold the replicas of new partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage


@dataclass(frozen=True, slots=True)
class Unplaceable:
    """Why there is no placement, in Kafka's words."""

    message: str


def place(
    image: ClusterImage, *, partitions: int, replication_factor: int, first_partition: int = 0, start: int = 0
) -> list[PartitionImage] | Unplaceable:
    """New partitions, leaders and followers spread evenly over brokers and racks.

    The first replicas go round all brokers from `start` on, so that topics with one partition don't all have the same
    leader; followers step by one more each round, so that the partitions of one leader have different followers.
    """
    registered = list(image.brokers.values())
    if replication_factor > len(registered):
        # Kafka 4.3's words, to the letter; nothing is cordoned here.
        return Unplaceable(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(registered)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    if all(broker.fenced for broker in registered):
        return Unplaceable("All brokers are currently fenced.")
    order = _by_rack(image.active_brokers()) + _by_rack(broker for broker in registered if broker.fenced)
    active = sum(not broker.fenced for broker in registered)
    first = start + first_partition
    # Placements repeat, and a partition's image never changes: thousands of partitions share a few objects.
    period = active * max(1, len(order) - 1)
    placed = [
        new_partition(image, _replicas(order, active, replication_factor, at=first + index))
        for index in range(min(partitions, period))
    ]
    return [placed[index % period] for index in range(partitions)]


def new_partition(image: ClusterImage, replicas: Sequence[int]) -> PartitionImage:
    """A partition whose living replicas are in sync, the first of them leading."""
    isr = tuple(each for each in replicas if each in image.brokers and not image.brokers[each].fenced)
    return PartitionImage(replicas=tuple(replicas), isr=isr, leader=isr[0])


def _by_rack(brokers: Iterable[BrokerImage]) -> list[int]:
    """Brokers so that neighbours stand in different racks for as long as there are racks left."""
    known = sorted(brokers, key=lambda each: each.id)
    if len(known) < 2:
        return [broker.id for broker in known]
    racks: dict[str | None, list[int]] = {}
    for broker in known:
        racks.setdefault(broker.rack, []).append(broker.id)
    rounds = zip_longest(*(racks[rack] for rack in sorted(racks, key=lambda each: each or "")))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _replicas(order: Sequence[int], active: int, count: int, *, at: int) -> list[int]:
    """The leader is an active broker; the others follow it in the order, shifted once a round."""
    leader = at % active
    others = [order[(leader + 1 + step) % len(order)] for step in range(len(order) - 1)]
    shift = at // active % len(others) if others else 0
    return [order[leader], *others[shift:], *others[:shift]][:count]
