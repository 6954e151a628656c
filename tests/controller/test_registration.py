"""What living brokers say of each other, and who is cut off by it."""

from __future__ import annotations

import msgspec

from moldau.controller.registration import BrokerRegistration, cut_off, encode_registration, serving
from moldau.store.store import Registration
from tests.controller.clusters import ENDPOINTS


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
