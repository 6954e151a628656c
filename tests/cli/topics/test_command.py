"""`moldau topics` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Tool

Done = Callable[..., str]


def test_a_topic_is_created_listed_and_deleted(done: Done, moldau_topic: str) -> None:
    assert done("topics", "create", moldau_topic, "--partitions", "3") == f"created {moldau_topic}\n"
    listed = [json.loads(line) for line in done("topics", "list", "-o", "jsonl").splitlines()]
    assert {"topic": moldau_topic, "partitions": 3, "replicas": 1, "size_bytes": 0} in listed
    assert done("topics", "delete", moldau_topic, "--yes") == f"deleted {moldau_topic}\n"
    assert moldau_topic not in done("topics", "list")


def test_the_table_has_a_header_and_aligned_columns(done: Done, topic: str) -> None:
    header, *rows = done("topics", "list").splitlines()
    assert header.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "SIZE"]
    assert [topic, "2", "1", "0", "B"] in [row.split() for row in rows]
    assert {len(row[: header.index("PARTITIONS")].rstrip()) < header.index("PARTITIONS") for row in rows} == {True}


def test_describe_shows_partitions_offsets_and_own_configs(done: Done, moldau_topic: str) -> None:
    done("topics", "create", moldau_topic, "-p", "2", "-c", "retention.ms=60000")
    done("produce", moldau_topic, "--partition", "1", stdin="a\nb\n")
    described = json.loads(done("topics", "describe", moldau_topic, "-o", "json"))[0]
    assert described["configs"] == {"retention.ms": "60000"}
    assert len(described["id"]) == 22
    assert [(each["partition"], each["start"], each["end"]) for each in described["partitions"]] == [
        (0, 0, 0),
        (1, 0, 2),
    ]
    table = done("topics", "describe", moldau_topic)
    assert "retention.ms=60000" in table
    assert "PARTITION  LEADER  REPLICAS  ISR  START  END" in table


def test_what_exists_already_is_an_error_unless_it_may(tool: Tool, topic: str) -> None:
    again = tool("topics", "create", topic)
    assert again.returncode == 1
    assert again.stderr == f"moldau topics: topic {topic!r} already exists; --if-not-exists accepts that\n"
    assert tool("topics", "create", topic, "--if-not-exists").returncode == 0


def test_what_is_missing_is_an_error_unless_it_may(tool: Tool, moldau_topic: str) -> None:
    gone = tool("topics", "delete", moldau_topic)
    assert gone.returncode == 1
    assert gone.stderr == f"moldau topics: topic {moldau_topic!r} does not exist; --if-exists accepts that\n"
    assert tool("topics", "delete", moldau_topic, "--if-exists").returncode == 0
    assert tool("topics", "describe", moldau_topic).returncode == 1


def test_one_bad_topic_does_not_stop_the_others(tool: Tool, moldau_topic: str) -> None:
    made = tool("topics", "create", "bad/name", moldau_topic)
    assert made.returncode == 1
    assert made.stdout == f"created {moldau_topic}\n"
    assert made.stderr.count("\n") == 1
    assert "bad/name" in made.stderr


def test_a_dry_run_creates_nothing(done: Done, tool: Tool, moldau_topic: str) -> None:
    assert done("topics", "create", moldau_topic, "--dry-run") == f"would create {moldau_topic}\n"
    assert moldau_topic not in done("topics", "list")
    wrong = tool("topics", "create", moldau_topic, "--dry-run", "-c", "retention.ms=soon")
    assert wrong.returncode == 1
    assert "retention.ms" in wrong.stderr


def test_a_number_of_partitions_that_cannot_be_is_one_line(tool: Tool, moldau_topic: str) -> None:
    refused = tool("topics", "create", moldau_topic, "--partitions", "-5")
    assert refused.returncode == 2
    assert refused.stderr.startswith("moldau topics: ")
    assert refused.stderr.count("\n") == 1


def test_internal_topics_are_deleted_by_nobody_in_passing(tool: Tool, topic: str) -> None:
    """A name like those of the cluster's own topics is enough."""
    name = f"__{topic}"
    tool("topics", "create", name)
    kept = tool("topics", "delete", name)
    assert (kept.returncode, kept.stdout) == (2, "")
    assert kept.stderr == (
        f"moldau topics: {name}: an internal topic, without which groups or transactions lose their state; say --yes\n"
    )
    assert tool("topics", "delete", name, "--yes").stdout == f"deleted {name}\n"


def test_nothing_is_deleted_without_a_word(tool: Tool, done: Done, topic: str) -> None:
    kept = tool("topics", "delete", topic)
    assert (kept.returncode, kept.stdout) == (2, "")
    assert kept.stderr == (
        f"moldau topics: delete topic {topic} and all records? Without a terminal to ask at it takes --yes;"
        " nothing was done\n"
    )
    assert topic in done("topics", "list")
