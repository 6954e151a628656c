"""Conditions narrow what is read where that can be no mistake, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

pytest.importorskip("sqlglot", reason="scripts/test-broker installs nothing of Spark")

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import Offsets
from moldau.spark.reading.narrowing import Narrowing, narrowing_from
from moldau.spark.sql.conditions import narrowing_of

NOTHING = Narrowing()
SINCE = Narrowing(since_ms=1000)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("_partition = 1", Narrowing(partitions=(1,))),
        ("_partition in (2, 1) and x = 5", Narrowing(partitions=(1, 2))),
        ("_partition = 1 and (_partition in (2, 1))", Narrowing(partitions=(1,))),
        ("_offset >= 5 and _offset < 10", Narrowing(offset_start=5, offset_end=10)),
        ("5 < _offset and 10 >= _OFFSET", Narrowing(offset_start=6, offset_end=11)),
        ("_offset between 5 and 7", Narrowing(offset_start=5, offset_end=8)),
        ("_offset = 5", Narrowing(offset_start=5, offset_end=6)),
        ("_offset in (9, 3)", Narrowing(offset_start=3, offset_end=10)),
        ("_offset > -5", Narrowing(offset_start=0)),
        ("_timestamp > now() - interval 1 hour", SINCE),
        ("_timestamp >= current_timestamp() - interval '90' minutes", SINCE),
        ("o._timestamp = timestamp '2026-01-01 00:00:00'", SINCE),
        ("_timestamp > '2026-01-01'", SINCE),
        ("_timestamp between '2026-01-01' and '2026-01-02'", SINCE),
        ("_timestamp >= date '2026-01-01'", SINCE),
        # From above nothing is known: a record may be older than one before it.
        ("_timestamp < '2026-01-01'", NOTHING),
        ("_timestamp > '2026-01-01' or x = 1", NOTHING),
        ("not _offset > 5", NOTHING),
        ("_offset > x", NOTHING),
        ("_offset + 1 > 5", NOTHING),
        ("_offset > 5.5", NOTHING),
        ("_offset in (5, null)", NOTHING),
        ("_offset in (select n from other)", NOTHING),
        ("_timestamp > to_timestamp(x)", NOTHING),
        ("_timestamp > now() - make_interval(0, 0, 0, 0, rand())", NOTHING),
        ("other._offset > 5", NOTHING),
        ("amount > 5", NOTHING),
        ("_offset > 5 group by window(_timestamp, '1 hour')", Narrowing(offset_start=6)),
    ],
)
def test_conditions_that_all_have_to_hold(where: str, expected: Narrowing) -> None:
    assert narrowing_of(f"select * from orders o where {where}", "orders", lambda _: 1000) == expected


@pytest.mark.parametrize(
    "question",
    [
        "select * from orders where _offset > 5 union all select * from orders",
        "select * from orders where _offset > 5 union all select * from ORDERS",
        "select * from orders o join customers c on o.id = c.id where o._offset > 5",
        "select * from customers c left join orders o on o.id = c.id where o._offset > 5",
        "select * from orders, customers where _offset > 5",
        "select * from orders lateral view explode(tags) t as tag where _offset > 5",
        "select * from orders tablesample (10 percent) where _offset > 5",
        "select * from (select * from orders) where _offset > 5",
        "with orders as (select 1 as _offset) select * from orders where _offset > 5",
        "select count(*) from orders having count(_offset) > 5",
    ],
)
def test_what_could_be_a_mistake_is_left_to_spark(question: str) -> None:
    assert narrowing_of(question, "orders", lambda _: 1000) == NOTHING


def test_a_select_within_others_counts_by_itself() -> None:
    asked = "with late as (select * from `web.orders` where _offset >= 7) select * from late l join c on l.id = c.id"
    assert narrowing_of(asked, "web.orders", lambda _: None) == Narrowing(offset_start=7)
    exists = "select * from c where exists (select 1 from orders where _partition = 3)"
    assert narrowing_of(exists, "orders", lambda _: None) == Narrowing(partitions=(3,))


class Timed:
    """Times out of order: the first record as new as 50 is at 5, and none is as new as 100."""

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets:
        assert all(ms in (50, 100) for ms in timestamps_ms.values())
        return {place: 5 if ms == 50 else -1 for place, ms in timestamps_ms.items()}


@pytest.mark.parametrize(
    ("narrowing", "ranges"),
    [
        (Narrowing(), [(2, 20), (0, 9)]),
        (Narrowing(partitions=(1,)), [(2, 2), (0, 9)]),
        (Narrowing(partitions=()), [(2, 2), (0, 0)]),
        (Narrowing(offset_start=1, offset_end=4), [(2, 4), (1, 4)]),
        (Narrowing(since_ms=50), [(5, 20), (5, 9)]),
        (Narrowing(since_ms=50, offset_start=8, partitions=(0,)), [(8, 20), (8, 0)]),
        (Narrowing(since_ms=100), [(20, 20), (9, 9)]),
        (Narrowing(since_ms=-1), [(2, 20), (0, 9)]),
    ],
)
def test_ranges_are_narrowed(narrowing: Narrowing, ranges: list[tuple[int, int]]) -> None:
    places = TopicPartition("orders", 0), TopicPartition("orders", 1)
    told = narrowing_from(narrowing.as_text())
    assert told == narrowing
    start, end = told.narrowed(dict(zip(places, (2, 0), strict=True)), dict(zip(places, (20, 9), strict=True)), Timed())
    assert [(start[place], end[place]) for place in places] == ranges
