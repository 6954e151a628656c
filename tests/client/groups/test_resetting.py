"""Where a group reads on: every rule, and everything that a log and a group may have."""

from __future__ import annotations

import pytest

from moldau.client.groups.resetting import (
    CURRENT,
    EARLIEST,
    LATEST,
    Known,
    NewOffset,
    NothingCommitted,
    Rule,
    Surprise,
    Target,
    datetime_ms,
    iso_duration_ms,
    new_offset,
    places_text,
    read_plans,
)
from moldau.core.ids import TopicPartition

PLACE = TopicPartition("orders", 1)
ABOVE, BELOW, LATE = Surprise.ABOVE_END, Surprise.BELOW_START, Surprise.NONE_SO_LATE


def to(offset: int) -> Rule:
    return Rule(Target.OFFSET, offset)


def by(number: int) -> Rule:
    return Rule(Target.SHIFT, number)


AT_A_TIME = Rule(Target.TIMESTAMP, 1_700_000_000_000)
READ = Known(start=10, end=20, committed=15)
UNREAD = Known(start=10, end=20)
EMPTY = Known(start=7, end=7, committed=7)
TRUNCATED = Known(start=10, end=20, committed=25)
EXPIRED = Known(start=10, end=20, committed=3)


@pytest.mark.parametrize(
    ("rule", "known", "wanted"),
    [
        (EARLIEST, READ, NewOffset(10)),
        (EARLIEST, EMPTY, NewOffset(7)),
        (LATEST, READ, NewOffset(20)),
        (LATEST, EMPTY, NewOffset(7)),
        (CURRENT, READ, NewOffset(15)),
        (CURRENT, UNREAD, NewOffset(20)),
        (CURRENT, TRUNCATED, NewOffset(25)),  # what is committed stays, whatever it is
        (CURRENT, EXPIRED, NewOffset(3)),
        (to(15), UNREAD, NewOffset(15, 15)),
        (to(10), UNREAD, NewOffset(10, 10)),
        (to(20), UNREAD, NewOffset(20, 20)),
        (to(21), UNREAD, NewOffset(20, 21, ABOVE)),
        (to(9), UNREAD, NewOffset(10, 9, BELOW)),
        (to(-1), UNREAD, NewOffset(10, -1, BELOW)),
        (to(0), EMPTY, NewOffset(7, 0, BELOW)),
        (to(8), EMPTY, NewOffset(7, 8, ABOVE)),
        (by(0), READ, NewOffset(15, 15)),
        (by(3), READ, NewOffset(18, 18)),
        (by(-3), READ, NewOffset(12, 12)),
        (by(5), READ, NewOffset(20, 20)),
        (by(6), READ, NewOffset(20, 21, ABOVE)),
        (by(-5), READ, NewOffset(10, 10)),
        (by(-6), READ, NewOffset(10, 9, BELOW)),
        (by(-1), EMPTY, NewOffset(7, 6, BELOW)),
        (by(-1), TRUNCATED, NewOffset(20, 24, ABOVE)),
        (by(1), EXPIRED, NewOffset(10, 4, BELOW)),
        (AT_A_TIME, Known(10, 20, at_time=12), NewOffset(12)),
        (AT_A_TIME, Known(10, 20, 15, at_time=20), NewOffset(20)),
        (AT_A_TIME, READ, NewOffset(20, surprise=LATE)),
        (AT_A_TIME, EMPTY, NewOffset(7, surprise=LATE)),
    ],
)
def test_the_new_offset_is_in_the_log(rule: Rule, known: Known, wanted: NewOffset) -> None:
    assert new_offset(rule, known, PLACE) == wanted


def test_nothing_is_counted_from_where_nothing_is_committed() -> None:
    with pytest.raises(NothingCommitted) as wrong:
        new_offset(by(1), UNREAD, PLACE)
    assert str(wrong.value) == "Cannot shift offset for partition orders-1 since there is no current committed offset"


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [
        ("P1D", 86_400_000),
        ("PT1M", 60_000),
        ("PT0S", 0),
        ("P2DT3H4M5S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_000),
        ("pt1.5s", 1_500),
        ("PT1.S", 1_000),
        ("PT0,25S", 250),
        ("PT-6H3M", -6 * 3_600_000 + 180_000),
        ("-PT6H", -21_600_000),
        ("-PT-6H", 21_600_000),
        ("+PT20.345S", 20_345),
        ("PT-1.5S", -1_500),
    ],
)
def test_durations_are_those_of_java(text: str, wanted_ms: int) -> None:
    assert iso_duration_ms(text) == wanted_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "PT1D", "P1W", "PT1H ", "PT1.1H", "5m"])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration; expected PnDTnHnMnS"):
        iso_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [
        ("2023-11-14T22:13:20.000", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20.000Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20.000+01:00", 1_700_000_000_000),
        ("2023-11-14T23:13:20.000+0100", 1_700_000_000_000),
        ("2023-11-14T21:13:20.000-01", 1_700_000_000_000),
    ],
)
def test_times_are_in_utc_unless_they_say_otherwise(text: str, wanted_ms: int) -> None:
    assert datetime_ms(text) == wanted_ms


@pytest.mark.parametrize("text", ["", "2023-11-14", "yesterday", "2023-13-14T22:13:20.000", "1700000000000"])
def test_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; expected YYYY-MM-DDThh:mm:ss"):
        datetime_ms(text)


def test_plans_are_of_one_group_or_name_theirs() -> None:
    place, other = TopicPartition("orders", 0), TopicPartition("a,b", 1)
    assert read_plans('orders,0,5\n\n"a,b",1,7\n', group="billing") == {"billing": {place: 5, other: 7}}
    named = "billing,orders,0,5\nmailing,orders,0,6\n"
    assert read_plans(named, group=None) == {"billing": {place: 5}, "mailing": {place: 6}}
    assert read_plans(named, group="billing") == read_plans(named, group=None)
    assert read_plans("", group="billing") == {}


@pytest.mark.parametrize(
    ("text", "group", "told"),
    [
        ("orders,0,5\n", None, "row 1 is 'orders,0,5'; expected group,topic,partition,offset"),
        ("orders,0,5\norders,1\n", "g", "row 2 is 'orders,1'; expected topic,partition,offset"),
        ("orders,x,5\n", "g", "row 1 is 'orders,x,5'; expected topic,partition,offset"),
        ("orders,0,-5\n", "g", "row 1 is 'orders,0,-5'; expected topic,partition,offset"),
    ],
)
def test_a_plan_that_can_not_be_read_is_refused_whole(text: str, group: str | None, told: str) -> None:
    with pytest.raises(ValueError, match="row") as wrong:
        read_plans(text, group=group)
    assert str(wrong.value) == told


def test_places_are_named_as_the_tools_take_them() -> None:
    places = [TopicPartition("b", 10), TopicPartition("b", 2), TopicPartition("a", 0)]
    assert places_text(places) == "a:0;b:2,10"
    assert places_text([]) == ""
