"""The forms of what a tool prints: each holds the same, and a program can read all but the table."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml

from moldau.cli.output import print_rows

ROWS = [
    {"topic": "a,b", "partitions": 3, "replicas": [1, 2], "configs": {"k": "v"}, "note": None},
    {"topic": 'ü"', "partitions": 0, "replicas": [], "configs": {}, "note": "two\nlines"},
]


def printed(capsys: pytest.CaptureFixture[str], output: str) -> str:
    print_rows(ROWS, columns=("topic", "partitions"), more=("replicas", "configs"), output=output)
    return capsys.readouterr().out


def test_a_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "table") == 'TOPIC  PARTITIONS\na,b    3\nü"     0\n'
    wide = printed(capsys, "wide").splitlines()
    assert wide[:2] == ["TOPIC  PARTITIONS  REPLICAS  CONFIGS", "a,b    3           1,2       k=v"]


def test_one_value_of_json_or_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "json")) == ROWS
    assert yaml.safe_load(printed(capsys, "yaml")) == ROWS
    assert [json.loads(line) for line in printed(capsys, "jsonl").splitlines()] == ROWS


def test_csv_has_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    read = [*csv.DictReader(io.StringIO(printed(capsys, "csv")))]
    assert read == [
        {"topic": "a,b", "partitions": "3", "replicas": "[1, 2]", "configs": '{"k": "v"}', "note": ""},
        {"topic": 'ü"', "partitions": "0", "replicas": "[]", "configs": "{}", "note": "two\nlines"},
    ]
