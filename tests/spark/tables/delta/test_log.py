"""What the log says of files, judged by deltalake: it knows the bounds, skips by them, and never skips too much."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.spark.tables.conftest import MakeSink
from tests.spark.tables.frames import batch, frame, write
from tests.spark.tables.sinks import Sink

pytestmark = pytest.mark.xdist_group("tables")

COLUMNS = "id bigint, at timestamp, ntz timestamp_ntz, price decimal(38 4), amount double, weight float, day date"
NOON = datetime.datetime(2026, 1, 31, 12, 0, 0, 123456)
HUGE = Decimal("9007199254740993.0001")  # a float has no room for its last digits


def row(number: int) -> tuple[Any, ...]:
    at = NOON + datetime.timedelta(days=number)
    return (number, at.replace(tzinfo=datetime.UTC), at, HUGE + number, number / 10, number / 4, at.date())


def written(sink: Sink, *rows: list[tuple[Any, ...]]) -> DeltaTable:
    write(sink.target(frame(COLUMNS)), 0, *(batch(COLUMNS, *each) for each in rows))
    return DeltaTable(sink.options["path"])


def asked(table: DeltaTable, condition: str) -> list[int]:
    found = QueryBuilder().register("kept", table).execute(f"select id from kept where {condition} order by id")
    return list(pa.table(found.read_all())["id"].to_pylist())


def statistics(sink: Sink) -> dict[str, Any]:
    """As the log has them."""
    [log] = [path for path in sink.folder().glob("_delta_log/*.json") if '"add"' in path.read_text()]
    [added] = [json.loads(line)["add"] for line in log.read_text().splitlines() if '"add"' in line]
    told: dict[str, Any] = json.loads(added["stats"], parse_float=str)
    return told


def test_the_bounds_are_as_the_protocol_has_them(make_sink: MakeSink) -> None:
    sink = make_sink("delta")
    written(sink, [row(1), row(0), (None,) * 7])
    assert statistics(sink) == {
        "numRecords": 3,
        "minValues": {
            "id": 0,
            "at": "2026-01-31T12:00:00.123Z",
            "ntz": "2026-01-31T12:00:00.123",
            "price": "9007199254740993.0001",
            "amount": "-0.0",
            "weight": "-0.0",
            "day": "2026-01-31",
        },
        "maxValues": {
            "id": 1,
            "at": "2026-02-01T12:00:00.124Z",
            "ntz": "2026-02-01T12:00:00.124",
            "price": "9007199254740994.0001",
            "amount": "0.1",
            "weight": "0.25",
            "day": "2026-02-01",
        },
        "nullCount": dict.fromkeys(frame(COLUMNS).names, 1),
    }


def test_deltalake_knows_the_bounds(make_sink: MakeSink) -> None:
    table = written(make_sink("delta"), [row(0), row(1)])
    [known] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert known["min.at"] == NOON.replace(microsecond=123000, tzinfo=datetime.UTC)
    assert known["max.ntz"] == NOON.replace(microsecond=124000) + datetime.timedelta(days=1)
    assert known["min.price"] == HUGE
    assert known["max.price"] == HUGE + 1
    assert (known["min.amount"], known["max.weight"], known["null_count.at"]) == (0.0, 0.25, 0)


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("at = timestamp '2026-01-31T12:00:00.123456Z'", [0]),
        ("at > timestamp '2026-02-04T00:00:00Z'", [4]),
        ("ntz <= timestamp '2026-01-31T12:00:00.123456'", [0]),
        (f"price = cast('{HUGE}' as decimal(38, 4))", [0]),
        (f"price > cast('{HUGE + 3}' as decimal(38, 4))", [4]),
        ("amount >= 0.4", [4]),
        ("weight < 0.25", [0]),
        ("day between date '2026-02-01' and date '2026-02-02'", [1, 2]),
    ],
)
def test_no_row_is_skipped_that_should_be_found(make_sink: MakeSink, condition: str, ids: list[int]) -> None:
    """One row in each file, so that a bound that is off by anything loses one."""
    assert asked(written(make_sink("delta"), *([row(number)] for number in range(5))), condition) == ids


def test_files_are_skipped(make_sink: MakeSink) -> None:
    dataset = written(make_sink("delta"), *([row(number)] for number in range(5))).to_pyarrow_dataset()
    noon = pa.scalar(NOON.replace(tzinfo=datetime.UTC), pa.timestamp("us", "UTC"))
    for condition, files in (
        (pc.field("at") <= noon, 1),
        (pc.field("price") > pa.scalar(HUGE + 2, pa.decimal128(38, 4)), 2),
        (pc.field("amount") < 0.05, 1),
    ):
        assert len(list(dataset.get_fragments(filter=condition))) == files


@pytest.mark.parametrize("unusual", [math.nan, math.inf, -math.inf])
def test_numbers_without_an_order_or_a_place_in_json_have_no_bounds(make_sink: MakeSink, unusual: float) -> None:
    """To Spark a NaN is greater than any number: a bound without it would skip the file that has it."""
    sink = make_sink("delta")
    written(sink, [row(0), (1, *row(1)[1:4], unusual, unusual, row(1)[6])])
    told = statistics(sink)
    assert not {"amount", "weight"} & {*told["minValues"], *told["maxValues"]}
    assert told["nullCount"]["amount"] == 0


def test_moments_before_the_epoch_are_rounded_outward(make_sink: MakeSink) -> None:
    sink = make_sink("delta")
    early = datetime.datetime(1901, 1, 1, 0, 0, 0, 999999)
    written(sink, [(1, early.replace(tzinfo=datetime.UTC), early, *row(1)[3:])])
    told = statistics(sink)
    assert told["minValues"]["ntz"] == "1901-01-01T00:00:00.999"
    assert told["maxValues"]["ntz"] == "1901-01-01T00:00:01.000"


def test_moments_that_python_does_not_have_have_no_bounds(make_sink: MakeSink) -> None:
    """Many a table has `9999-12-31 23:59:59.999999` for a time without an end; rounded up it is a year later."""
    sink = make_sink("delta")
    last = datetime.datetime.max
    table = written(sink, [row(0), (1, last.replace(tzinfo=datetime.UTC), last, *row(1)[3:6], last.date())])
    told = statistics(sink)
    assert not {"at", "ntz"} & {*told["minValues"], *told["maxValues"]}
    assert (told["maxValues"]["day"], told["nullCount"]["at"]) == ("9999-12-31", 0)
    assert asked(table, "at > timestamp '2026-02-04T00:00:00Z'") == [1]


def test_the_greatest_moment_is_that_of_a_row_and_not_of_a_bound(make_sink: MakeSink) -> None:
    table = written(make_sink("delta"), [row(0)], [row(1)])
    found = QueryBuilder().register("kept", table).execute("select max(at) as latest, min(price) as least from kept")
    [answer] = pa.table(found.read_all()).to_pylist()
    assert answer == {"latest": row(1)[1], "least": HUGE}
