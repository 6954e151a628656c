"""A pipeline in Python says the same as one in SQL, and its mistakes are named with their lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moldau.spark.pipelines.loading import load
from moldau.spark.pipelines.plan import Location, PipelineError, Plan

PYTHON = """\
from moldau.spark.pipelines.building import Pipeline, delta, topic

pipeline = Pipeline("shop", bootstrap_servers="localhost:9092")
pipeline.stream("orders", topic("orders", valueFormat="json"), key="id",
                watermark=("at", "10 minutes"), deduplicate="id")
pipeline.table("customers", topic("customers"), key="id", changes=True)

@pipeline.view
def priced(orders, customers):
    return orders.join(customers, "id")

pipeline.expect("positive", on="priced", check="amount > 0", otherwise="dead-letter")
pipeline.sink("lake", delta("./lake"), reads="priced", key=("id",), upsert=True, every="5 seconds")
pipeline.sql("create sink out into topic 'out' once as select * from priced")
"""

SQL = """\
set bootstrap.servers = 'localhost:9092';
create stream orders from topic 'orders' key id watermark at delay '10 minutes' deduplicate on id
    with (valueFormat = json);
create table customers from topic 'customers' key id changes;
create view priced as select * from orders join customers using (id);
expect positive on priced check (amount > 0) otherwise dead letter;
create sink lake into delta './lake' key id upsert every '5 seconds' as select * from priced;
create sink out into topic 'out' once as select * from priced;
"""


def without_places(plan: Plan) -> Plan:
    nowhere = Location("", 0)
    return replace(
        plan,
        sources=tuple(replace(one, place=nowhere) for one in plan.sources),
        views=tuple(
            replace(one, place=nowhere, query=replace(one.query, sql=None, function=None)) for one in plan.views
        ),
        expectations=tuple(replace(one, place=nowhere) for one in plan.expectations),
        sinks=tuple(replace(one, place=nowhere) for one in plan.sinks),
    )


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_python_and_sql_make_the_same_plan(tmp_path: Path) -> None:
    python, sql = (load(written(tmp_path, name, text)) for name, text in (("shop.py", PYTHON), ("shop.sql", SQL)))
    assert without_places(python) == without_places(sql)
    assert [one.place for one in python.sources] == [Location("shop.py", 4), Location("shop.py", 6)]
    assert python.sinks[1].place == Location("shop.py", 14)


def test_sql_includes_python(tmp_path: Path) -> None:
    written(tmp_path, "more.py", PYTHON)
    plan = load(written(tmp_path, "main.sql", "include 'more.py'; create view v as select * from priced"))
    assert [view.name for view in plan.views] == ["priced", "v"]
    assert plan.name == "main"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "a.txt:1: a pipeline's file ends in .sql or .py"),
        ("a.py", "x = 1\n", "a.py:1: one Pipeline was expected at the top level, found 0"),
        ("a.py", "x = 1\ny = 1 / 0\n", "a.py:2: ZeroDivisionError: division by zero"),
        ("a.py", "x = (\n", "a.py:1: SyntaxError"),
        ("a.py", PYTHON.replace("5 seconds", "5 parsecs"), "a.py:13: '5 parsecs' is no duration"),
        ("a.py", PYTHON.replace("dead-letter", "explode"), "a.py:12: otherwise 'explode' is unknown; allowed: warn, "),
        ("a.sql", "include 'missing.py'", "missing.py:1: can't be read: No such file"),
        ("a.sql", "include 'b.sql'", "a.sql:1: INCLUDE takes a .py file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(PipelineError) as failed:
        load(written(tmp_path, name, text))
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none.sql:1: can't be read"):
        load(tmp_path / "none.sql")
