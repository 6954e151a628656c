"""What SQL files of a project define, as far as a drawing asks."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.declarative.elements import Elements, Flow, Output, OutputKind
from moldau.spark.pipelines.declarative.statements import inputs_of, read_statements


def read(text: str) -> Elements:
    elements = Elements()
    read_statements(text, elements)
    return elements


def test_tables_and_views() -> None:
    found = read(
        """-- a comment; with a semicolon
        CREATE STREAMING TABLE clean AS SELECT * FROM STREAM(raw) WHERE note <> ';';
        create or replace materialized view `daily` comment 'AS of today' as
            with recent as (select * from clean) select day, count(*) from recent join shop.days using (day) group by 1;
        CREATE TEMPORARY VIEW some AS SELECT * FROM STREAM clean"""
    )
    assert list(found.outputs.values()) == [
        Output("clean", OutputKind.STREAMING_TABLE),
        Output("daily", OutputKind.MATERIALIZED_VIEW),
        Output("some", OutputKind.TEMPORARY_VIEW),
    ]
    assert list(found.flows.values()) == [
        Flow("clean", "clean", ("raw",)),
        Flow("daily", "daily", ("shop.days", "clean")),
        Flow("some", "some", ("clean",)),
    ]


def test_flows_into_a_table() -> None:
    found = read(
        """CREATE STREAMING TABLE both (id bigint);
        CREATE FLOW east AS INSERT INTO both BY NAME SELECT * FROM STREAM(east_orders);
        CREATE FLOW changes AS AUTO CDC INTO customers FROM STREAM(events) KEYS (id) SEQUENCE BY at;"""
    )
    assert list(found.flows.values()) == [
        Flow("east", "both", ("east_orders",)),
        Flow("changes", "customers", ("events",)),
    ]


@pytest.mark.parametrize("query", ["select from where", "", "'not closed"])
def test_what_is_no_sql_reads_nothing(query: str) -> None:
    assert inputs_of(query) == ()


def test_a_file_that_is_no_sql_defines_nothing() -> None:
    assert read("create streaming table 'not closed").outputs == {}
