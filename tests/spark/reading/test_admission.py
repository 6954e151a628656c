"""How much one micro-batch takes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.ids import TopicPartition
from moldau.spark.reading.admission import Admission, cap, share

A, B, C = (TopicPartition("t", index) for index in range(3))
lags = st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 10_000), min_size=1)


def test_without_limits_all_is_taken() -> None:
    assert Admission().end_of_batch({A: 1}, {A: 9}, waited_ms=0) == {A: 9}


def test_a_limit_is_shared_in_proportion_to_lag() -> None:
    assert share({A: 0, B: 100}, {A: 900, B: 200}, records_max=100) == {A: 90, B: 110}


def test_a_small_partition_is_not_starved() -> None:
    assert share({A: 0, B: 0}, {A: 1_000_000, B: 1}, records_max=10)[B] == 1


def test_what_rounding_leaves_over_is_given_out() -> None:
    assert share({A: 0, B: 0}, {A: 1_001, B: 999}, records_max=1_000) == {A: 501, B: 499}
    assert share({A: 0, B: 0, C: 0}, {A: 100, B: 100, C: 100}, records_max=200) == {A: 67, B: 67, C: 66}


def test_a_batch_waits_for_its_minimum_until_the_delay_is_over() -> None:
    admission = Admission(records_min=10, delay_ms_max=1000)
    assert admission.end_of_batch({A: 0}, {A: 9}, waited_ms=999) == {A: 0}
    assert admission.end_of_batch({A: 0}, {A: 9}, waited_ms=1000) == {A: 9}
    assert admission.end_of_batch({A: 0}, {A: 10}, waited_ms=0) == {A: 10}
    assert admission.end_of_batch({A: 0}, {A: 9}, waited_ms=0, may_wait=False) == {A: 9}


def test_a_run_over_what_was_available_goes_no_further() -> None:
    assert cap({A: 50, B: 9, C: 5}, {A: 40, B: 20}, start={A: 10, B: 3}) == {A: 40, B: 9}
    assert cap({A: 50}, {A: 40}, start={A: 45}) == {A: 45}


@settings(deadline=None)
@given(lags, st.integers(1, 5_000))
def test_a_share_moves_every_partition_and_keeps_the_limit(lag: dict[TopicPartition, int], records_max: int) -> None:
    start = dict.fromkeys(lag, 7)
    latest = {place: 7 + size for place, size in lag.items()}
    end = share(start, latest, records_max=records_max)
    assert all(start[place] <= end[place] <= latest[place] for place in lag)
    assert all(end[place] > start[place] for place in lag if lag[place])
    assert sum(end[place] - 7 for place in lag) <= records_max + len(lag)
