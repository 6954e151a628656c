from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moldau.controller.image import PartitionImage
from moldau.controller.machine import apply
from moldau.controller.partitions.placement import Unplaceable, leader_position, place
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


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9),
    partitions=st.integers(1, 60),
    start=st.integers(0, 20),
    data=st.data(),
)
def test_replicas_are_in_as_many_racks_as_there_are(
    racks: list[str], partitions: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    image = cluster(brokers=len(racks), racks=tuple(racks))
    for each in placed(place(image, partitions=partitions, replication_factor=factor, start=start)):
        used = Counter(racks[broker - 1] for broker in each.replicas)
        assert len(used) == min(factor, len(set(racks)))
        for rack, count in used.items():
            left = racks.count(rack) - count
            assert not left or max(used.values()) - count <= 1, "no rack has two more than one with room"


@pytest.mark.parametrize("racks", [(None,) * 9, ("a", "b", "c") * 3])
def test_followers_are_spread_evenly(racks: tuple[str | None, ...]) -> None:
    image = cluster(brokers=9, racks=racks)
    result = placed(place(image, partitions=9 * 8 * 3, replication_factor=3))
    held = Counter(broker for each in result for broker in each.replicas)
    assert max(held.values()) == min(held.values()) == 9 * 8
    followers = {leader: {each.replicas[1] for each in result if each.leader == leader} for leader in held}
    assert all(len(each) >= 6 for each in followers.values()), "whoever takes over has a share, not all"


def test_a_fenced_broker_follows_but_does_not_lead() -> None:
    image = cluster(brokers=2)
    image = apply(image, [BrokerRegistered(replace(image.brokers[1], fenced=True))])
    for each in placed(place(image, partitions=4, replication_factor=2)):
        assert (each.leader, each.isr, set(each.replicas)) == (2, (2,), {1, 2})


def test_one_that_shuts_down_is_placed_last_and_is_not_in_sync() -> None:
    image = cluster(brokers=3)
    image = apply(image, [BrokerRegistered(replace(image.brokers[1], in_controlled_shutdown=True))])
    assert all(1 not in each.replicas for each in placed(place(image, partitions=6, replication_factor=2)))
    for each in placed(place(image, partitions=6, replication_factor=3)):
        assert (each.replicas[2], set(each.isr)) == (1, {2, 3})


def test_somebody_must_be_active() -> None:
    image = cluster(brokers=2)
    fenced = apply(image, [BrokerRegistered(replace(each, fenced=True)) for each in image.brokers.values()])
    words = "All brokers are currently fenced, or have all their log directories cordoned."
    assert place(fenced, partitions=1, replication_factor=3) == Unplaceable(words)
    stopping = apply(fenced, [BrokerRegistered(replace(image.brokers[1], in_controlled_shutdown=True))])
    words = "All brokers are currently fenced or in controlled shutdown."
    assert place(stopping, partitions=1, replication_factor=1) == Unplaceable(words)


def test_partitions_that_are_added_go_on_after_the_first() -> None:
    image = cluster(brokers=3)
    (first,) = placed(place(image, partitions=1, replication_factor=1, start=1))
    more = place(
        image, partitions=2, replication_factor=1, first_partition=1, start=leader_position(image, first.leader)
    )
    assert [first.leader, *(each.leader for each in placed(more))] == [2, 3, 1]


def test_there_must_be_enough_brokers() -> None:
    assert isinstance(place(cluster(brokers=2), partitions=1, replication_factor=3), Unplaceable)
    assert isinstance(place(cluster(brokers=0), partitions=1, replication_factor=1), Unplaceable)
