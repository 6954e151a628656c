"""`moldau groups list`, `describe` and `lag` against a running broker; the tests hold for Apache Kafka too."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import Tool

Done = Callable[..., str]


def test_a_group_at_rest_is_listed_with_its_lag(done: Done, resting: str, filled: str) -> None:
    rows = {row["group"]: row for row in json.loads(done("groups", "list", "-o", "json"))}
    assert rows[resting] == {
        "group": resting,
        "type": "Classic",
        "protocol": "",
        "state": "Empty",
        "members": 0,
        "partitions": 1,
        "topics": [filled],
        "lag": 6,
    }
    header, *lines = done("groups", "list", "--state", "empty", "--type", "classic").splitlines()
    assert header.split() == ["GROUP", "TYPE", "STATE", "MEMBERS", "PARTITIONS", "LAG"]
    assert [resting, "Classic", "Empty", "0", "1", "6"] in [line.split() for line in lines]
    assert resting not in done("groups", "list", "--state", "stable")
    assert resting not in done("groups", "list", "--type", "consumer")


def test_an_active_group_is_described_with_its_members(done: Done, active: str, filled: str) -> None:
    told = done("groups", "describe", active).split("\n\n")
    head = dict(line.split(maxsplit=1) for line in told[0].splitlines())
    assert (head["group"], head["type"], head["lag"]) == (active, "Classic", "6")
    assert head["state"] == "Stable, 1 member, assigned by range"
    partitions, members = ([line.split() for line in part.splitlines()] for part in told[1:])
    assert partitions == [
        ["TOPIC", "PARTITION", "OFFSET", "END", "LAG", "CLIENT"],
        [filled, "0", "4", "10", "6", "clerk"],
        [filled, "1", "-", "0", "-", "clerk"],
    ]
    assert members[0] == ["MEMBER", "CLIENT", "HOST", "PARTITIONS"]
    assert members[1][1:] == ["clerk", "/127.0.0.1", "2"]


def test_programs_get_the_same_as_people(done: Done, active: str, filled: str) -> None:
    (described,) = json.loads(done("groups", "describe", active, "-o", "json"))
    assert (described["state"], described["protocol"], described["lag"]) == ("Stable", "consumer", 6)
    (member,) = described["members"]
    assert (member["client"], member["assignment"]) == ("clerk", f"{filled}:0,1")
    partitions = [(each["partition"], each["offset"], each["lag"]) for each in described["partitions"]]
    assert partitions == [(0, 4, 6), (1, None, None)]
    rows = [*csv.DictReader(done("groups", "describe", active, "-o", "csv").splitlines())]
    assert [(row["group"], row["partition"], row["lag"]) for row in rows] == [(active, "0", "6"), (active, "1", "")]


def test_lag_is_one_table_of_many_groups(done: Done, resting: str, filled: str) -> None:
    header, row, _, total = done("groups", "lag", resting).splitlines()
    assert header.split() == ["GROUP", "TOPIC", "PARTITION", "OFFSET", "END", "LAG"]
    assert row.split() == [resting, filled, "0", "4", "10", "6"]
    assert total == "6 behind in 1 partition of 1 group"
    everybody = [json.loads(line) for line in done("groups", "lag", "--topic", filled, "-o", "jsonl").splitlines()]
    assert [(each["group"], each["lag"]) for each in everybody] == [(resting, 6)]
    assert json.loads(done("groups", "lag", resting, "--topic", "another", "-o", "json")) == []


def test_who_is_there_is_shown_though_another_is_not(tool: Tool, resting: str) -> None:
    ended = tool("groups", "describe", resting, f"{resting}x")
    assert (ended.returncode, ended.stdout.split()[1]) == (1, resting)
    assert ended.stderr == f"moldau groups: group '{resting}x' does not exist; did you mean {resting}?\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("describe nobody-at-all", 1, "group 'nobody-at-all' does not exist; see: moldau groups list"),
        (
            "list --type clasic",
            2,
            "--type 'clasic': expected one of Classic, Consumer, Share, Streams; did you mean Classic?",
        ),
        ("describe", 2, "the following arguments are required: GROUP; see: moldau groups describe --help"),
        ("list --stat empty --foo", 2, "unknown option --foo; see: moldau groups list --help"),
        ("lst", 2, "unknown action 'lst'; did you mean list?; see: moldau groups --help"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tool: Tool, words: str, code: int, message: str) -> None:
    ended = tool("groups", *words.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"moldau groups: {message}\n")


def test_bytes_that_are_no_text_are_refused(tool: Tool) -> None:
    ended = tool("groups", "describe", b"\xff\xfe")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "moldau: argument 3 is no text in UTF-8: b'\\xff\\xfe'\n"


def test_nobody_answers(tool: Tool) -> None:
    for words in (("groups", "list"), ("groups", "--list"), ("consumer-groups", "--list")):
        ended = tool(*words, "-b", "127.0.0.1:1")
        told = f"moldau {words[0]}: no broker answers at 127.0.0.1:1; start one with: moldau start\n"
        assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", told)
