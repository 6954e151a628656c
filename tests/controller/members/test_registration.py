"""What living brokers say of each other, and who is cut off by it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from moldau.controller.members.registration import (
    BrokerRegistration,
    cut_off,
    encode_registration,
    lost_or_kept,
    serving,
)
from moldau.core.ids import TopicId
from moldau.store.store import Registration
from tests.controller.clusters import ENDPOINTS, cluster, partition, topic, topic_id


def saying(**out_of_reach: tuple[int, ...]) -> list[BrokerRegistration]:
    """`b1=(2,)`: broker 1 can't reach broker 2."""
    return [
        BrokerRegistration(int(name[1:]), name.encode(), ENDPOINTS, out_of_reach=silent)
        for name, silent in out_of_reach.items()
    ]


def test_a_broker_is_cut_off_that_the_others_can_t_reach() -> None:
    assert cut_off(saying(b1=(3,), b2=(3,), b3=())) == {3}
    assert cut_off(saying(b1=(3,), b2=(3,), b3=(1, 2))) == {3}


def test_one_complaint_is_not_enough() -> None:
    assert cut_off(saying(b1=(3,), b2=(), b3=(1,))) == frozenset()
    assert cut_off(saying(b1=(4,), b2=(4,), b3=(), b4=())) == frozenset()


def test_two_brokers_never_cut_each_other_off() -> None:
    assert cut_off(saying(b1=(2,), b2=(1,))) == frozenset()
    assert cut_off(saying(b1=(2, 3), b2=(1, 3))) == frozenset()


def test_of_two_halves_none_is_cut_off_and_of_others_the_smaller() -> None:
    assert cut_off(saying(b1=(3, 4), b2=(3, 4), b3=(1, 2), b4=(1, 2))) == frozenset()
    assert cut_off(saying(b1=(4, 5), b2=(4, 5), b3=(4, 5), b4=(1, 2, 3), b5=(1, 2, 3))) == {4, 5}


def test_where_nobody_hears_anybody_none_is_cut_off() -> None:
    assert cut_off(saying(b1=(2, 3), b2=(1, 3), b3=(1, 2))) == frozenset()


def test_who_is_gone_counts_no_more() -> None:
    assert cut_off(saying(b1=(3,), b2=(3,), b4=())) == frozenset()
    assert cut_off(saying(b1=(3, 4, 5), b2=(3,), b3=())) == {3}


def test_registrations_of_brokers_before_this_field_are_read() -> None:
    (registration,) = saying(b1=(2, 3))
    assert serving([encode_registration(registration)]) == [registration]
    (plain,) = saying(b1=())
    fields = msgspec.msgpack.decode(encode_registration(plain).payload)
    before = msgspec.msgpack.encode(fields[:8])  # of which `lost` is the last
    assert serving([Registration(1, before)]) == [plain]


def test_a_broker_tells_which_logs_it_lost_or_which_it_kept_whichever_is_less() -> None:
    topics = [replace(topic(f"t{each}", number=each), partitions=(partition(1, 2), partition(2))) for each in (1, 2, 3)]
    image = cluster(*topics, brokers=2)
    assert lost_or_kept(image, 1, {}) == ({}, None)
    assert lost_or_kept(image, 1, {topic_id(1): (0,)}) == ({topic_id(1): (0,)}, None)
    two: dict[TopicId, tuple[int, ...]] = {topic_id(1): (0,), topic_id(2): (0,)}
    assert lost_or_kept(image, 1, two) == ({}, {topic_id(3): (0,)})
    assert lost_or_kept(image, 2, {each.id: (0, 1) for each in topics}) == ({}, {})


def test_a_broker_that_lost_its_only_disk_fits_into_a_node_of_zookeeper() -> None:
    topics = [topic(f"t{each}", number=each) for each in range(50_000)]
    image = cluster(*topics, brokers=1)
    lost, kept = lost_or_kept(image, 1, {each.id: (0,) for each in topics})
    registration = encode_registration(BrokerRegistration(1, b"1", ENDPOINTS, lost=lost, kept=kept))
    assert len(registration.payload) < 1_000
