"""`moldau topics list` with sizes, rates and lag."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from moldau.cli.topics.listing import size_text

Done = Callable[..., str]


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def listed(done: Done, topic: str, *options: str) -> dict[str, Any]:
    (row,) = json.loads(done("topics", "list", topic, "-o", "json", *options))
    found: dict[str, Any] = row
    return found


def test_the_group_that_is_furthest_behind(bootstrap: str, done: Done, topic: str) -> None:
    done("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    assert listed(done, topic, "--lag") | {"size_bytes": 0} == {
        "topic": topic, "partitions": 2, "replicas": 1, "size_bytes": 0, "lag": None, "group": None,
    }  # fmt: skip
    for group, offset in ((f"{topic}-slow", 1), (f"{topic}-fast", 3)):
        commit(bootstrap, group, topic, offset)
    row = listed(done, topic, "--lag")
    assert (row["lag"], row["group"]) == (2, f"{topic}-slow")
    header, cells = done("topics", "list", topic, "-o", "wide").splitlines()
    assert header.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "SIZE", "LAG", "GROUP"]
    assert cells.split() == [topic, "2", "1", "3", str(row["size_bytes"]), "B", "2", f"{topic}-slow"]


def test_a_rate_takes_two_looks(done: Done, topic: str) -> None:
    assert listed(done, topic, "--rate")["records_per_s"] == 0.0
    header, cells = done("topics", "list", topic, "--rate").splitlines()
    assert header.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "SIZE", "RATE"]
    assert cells.split() == [topic, "2", "1", "0", "B", "0.0/s"]


def test_names_and_expressions_choose(done: Done, topic: str) -> None:
    done("topics", "create", f"{topic}-more", "__more")
    try:
        assert topics(done, topic) == [topic]
        assert topics(done, f"{topic}.*") == [topic, f"{topic}-more"]
        assert topics(done, "__more") == ["__more"]
        assert "__more" not in topics(done)
        assert "__more" in topics(done, "--internal")
    finally:
        done("topics", "delete", "__more", "--yes")


def topics(done: Done, *words: str) -> list[str]:
    return [json.loads(line)["topic"] for line in done("topics", "list", "-o", "jsonl", *words).splitlines()]


@pytest.mark.parametrize(
    ("size", "written"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 40, "1.0 TiB"), (None, None)]
)
def test_sizes(size: int | None, written: str | None) -> None:
    assert size_text(size) == written
