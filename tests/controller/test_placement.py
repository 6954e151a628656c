from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moldau.controller.image import PartitionImage
from moldau.controller.machine import apply
from moldau.controller.placement import Unplaceable, place
from moldau.controller.records import BrokerRegistered
from tests.controller.clusters import cluster


def placed(partitions: list[PartitionImage] | Unplaceable) -> list[PartitionImage]:
    assert not isinstance(partitions, Unplaceable)
    return partitions


@given(brokers=st.integers(1, 7), partitions=st.integers(1, 50), start=st.integers(0, 20), data=st.data())
def test_replicas_are_different_and_leaders_spread_evenly(
    brokers: int, partitions: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, brokers))
    image = cluster(brokers=brokers)
    result = placed(place(image, partitions=partitions, replication_factor=factor, start=start))
    assert all(len(set(each.replicas)) == factor for each in result)
    assert all(each.isr == each.replicas and each.leader == each.replicas[0] for each in result)
    leaders = Counter(dict.fromkeys(image.brokers, 0))
    leaders.update(each.leader for each in result)
    assert max(leaders.values()) - min(leaders.values()) <= 1


def test_racks_take_turns() -> None:
    image = cluster(brokers=4, racks=("a", "a", "b", "b"))
    racks = {number: broker.rack for number, broker in image.brokers.items()}
    for each in placed(place(image, partitions=4, replication_factor=2)):
        assert {racks[broker] for broker in each.replicas} == {"a", "b"}


def test_a_fenced_broker_follows_but_does_not_lead() -> None:
    image = cluster(brokers=2)
    image = apply(image, [BrokerRegistered(replace(image.brokers[1], fenced=True))])
    for each in placed(place(image, partitions=4, replication_factor=2)):
        assert (each.leader, each.isr, set(each.replicas)) == (2, (2,), {1, 2})


def test_there_must_be_enough_brokers() -> None:
    assert isinstance(place(cluster(brokers=2), partitions=1, replication_factor=3), Unplaceable)
    assert isinstance(place(cluster(brokers=0), partitions=1, replication_factor=1), Unplaceable)
