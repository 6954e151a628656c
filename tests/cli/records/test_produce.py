"""`moldau produce` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Tool

Done = Callable[..., str]


def read_all(done: Done, topic: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done("consume", topic, "--from-beginning", "-e", "-o", "json").splitlines()]


def test_each_line_is_a_record(done: Done, topic: str) -> None:
    assert done("produce", topic, "--partition", "0", stdin="one\n\nthree without an end") == ""
    records = read_all(done, topic)
    assert [(record["key"], record["value"]) for record in records] == [
        (None, "one"),
        (None, ""),
        (None, "three without an end"),
    ]


def test_keys_headers_and_nulls(done: Done, topic: str) -> None:
    options = ("--key-separator", "=>", "--null-marker", "NIL", "-H", "from=shell", "-H", "from=again")
    done("produce", topic, *options, stdin="k=>v=>w\nNIL=>x\nk=>NIL\n")
    records = sorted(read_all(done, topic), key=str)
    assert {(record["key"], record["value"]) for record in records} == {("k", "v=>w"), (None, "x"), ("k", None)}
    assert all(record["headers"] == [["from", "shell"], ["from", "again"]] for record in records)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression(done: Done, topic: str, compression: str) -> None:
    lines = [f"record {number} " + "x" * 200 for number in range(500)]
    done("produce", topic, "-p", "1", "--compression", compression, stdin="\n".join(lines))
    assert [record["value"] for record in read_all(done, topic)] == lines


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(done: Done, topic: str, acks: str) -> None:
    done("produce", topic, "--acks", acks, "--key", "same", stdin="a\nb\n")
    assert [record["value"] for record in read_all(done, topic)] == ["a", "b"]


def test_where_each_record_went_can_be_printed(done: Done, topic: str) -> None:
    placed = [json.loads(line) for line in done("produce", topic, "-p", "1", "-o", "json", stdin="a\nb\n").splitlines()]
    assert placed == [{"topic": topic, "partition": 1, "offset": offset} for offset in (0, 1)]


def test_json_is_read_back_as_consume_wrote_it(done: Done, topic: str, moldau_topic: str) -> None:
    records: list[dict[str, Any]] = [
        {
            "key": "k",
            "value": "v",
            "headers": [["a", "1"], ["a", None]],
            "timestamp": 1_700_000_000_000,
            "partition": 1,
        },
        {
            "key": {"base64": "/wA="},
            "value": {"base64": "gIE="},
            "headers": [["b", {"base64": "/w=="}]],
            "partition": 1,
        },
        {"key": None, "value": None, "partition": 1},
        {"value": "žluťoučký \n \u2028 kůň", "partition": 1},
    ]
    done("produce", topic, "-i", "json", "--keep-partitions", stdin="\n".join(map(json.dumps, records)))
    first = done("consume", topic, "--from-beginning", "-e", "-o", "json")
    done("topics", "create", f"{moldau_topic}-copy", "-p", "2")
    done("produce", f"{moldau_topic}-copy", "-i", "json", "--keep-partitions", stdin=first)
    second = done("consume", f"{moldau_topic}-copy", "--from-beginning", "-e", "-o", "json")
    assert second.replace(f"{moldau_topic}-copy", moldau_topic) == first
    shown = [json.loads(line) for line in first.splitlines()]
    assert [record["value"] for record in shown] == [record["value"] for record in records]
    assert shown[0]["timestamp"] == 1_700_000_000_000
    assert shown[0]["headers"] == [["a", "1"], ["a", None]]


@pytest.mark.parametrize(
    ("options", "stdin", "complaint"),
    [
        (("--key-separator", ":"), "a:1\nno key\n", "line 2 of the input: no key: the line has no ':'"),
        (("-i", "json"), '{"value": "a"}\n{', "line 2 of the input: not JSON"),
        (("-i", "json"), "[]", "line 1 of the input: expected an object"),
        (("-i", "json"), '{"valeu": "a"}', "line 1 of the input: unknown field 'valeu'"),
        (("-H", "nothing"), "", "--header: expected NAME=VALUE, not 'nothing'"),
        (("-X", "no.such.key=1"), "", 'No such configuration property: "no.such.key"'),
    ],
)
def test_wrong_input_is_a_usage_error(
    tool: Tool, topic: str, options: tuple[str, ...], stdin: str, complaint: str
) -> None:
    finished = tool("produce", topic, *options, stdin=stdin)
    assert finished.returncode == 2
    assert complaint in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_lines_before_a_wrong_one_are_sent(done: Done, tool: Tool, topic: str) -> None:
    assert tool("produce", topic, "-i", "json", stdin='{"value": "sent"}\nwrong\n').returncode == 2
    assert [record["value"] for record in read_all(done, topic)] == ["sent"]


def test_a_partition_that_is_not_there(tool: Tool, topic: str) -> None:
    finished = tool("produce", topic, "--partition", "7", stdin="a\n")
    assert finished.returncode == 1
    assert finished.stderr == f"moldau produce: topic {topic!r} has no partition 7; it has 2, counted from 0\n"


def test_a_record_that_the_broker_refuses_is_a_failure(done: Done, tool: Tool, moldau_topic: str) -> None:
    done("topics", "create", moldau_topic, "-c", "max.message.bytes=1000")
    finished = tool("produce", moldau_topic, stdin="x" * 5_000)
    assert finished.returncode == 1
    assert finished.stderr.startswith("moldau produce: 1 records were not delivered:")
    assert "too large" in finished.stderr.lower()
