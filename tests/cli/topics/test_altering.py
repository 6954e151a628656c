"""`moldau topics alter` and `trim`: what is lost is asked for, and what cannot be is refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import Tool, command, environment

Done = Callable[..., str]


def starts(done: Done, topic: str) -> list[int]:
    (described,) = json.loads(done("topics", "describe", topic, "-o", "json"))
    return [each["start"] for each in described["partitions"]]


def partitions(done: Done, topic: str) -> int:
    return len(starts(done, topic))


def configs(done: Done, topic: str) -> dict[str, str]:
    (described,) = json.loads(done("topics", "describe", topic, "-o", "json"))
    found: dict[str, str] = described["configs"]
    return found


def at_terminal(bootstrap: str, answer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    ours, theirs = os.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        return subprocess.run(
            command(*arguments), env=environment(bootstrap), stdin=theirs, capture_output=True, text=True, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)


def test_configs_are_set_and_go_back_to_the_default(done: Done, topic: str) -> None:
    altered = done("topics", "alter", topic, "-c", "retention.ms=60000", "-c", "segment.ms=7000000")
    assert altered == f"altered {topic} retention.ms=60000 segment.ms=7000000\n"
    assert configs(done, topic) == {"retention.ms": "60000", "segment.ms": "7000000"}
    altered = done("topics", "alter", topic, "-c", "retention.ms=5000", "--delete-config", "segment.ms")
    assert altered == f"altered {topic} retention.ms=5000 segment.ms=default\n"
    assert configs(done, topic) == {"retention.ms": "5000"}


def test_partitions_grow_where_no_keys_move(done: Done, topic: str) -> None:
    done("produce", topic, stdin="a\nb\n")
    assert done("topics", "alter", topic, "-p", "3") == f"altered {topic} partitions=3\n"
    assert partitions(done, topic) == 3


def test_internal_topics_do_not_grow_without_a_warning(tool: Tool, done: Done, topic: str) -> None:
    done("consume", topic, "-g", topic, "--from-beginning", "-e")
    count = partitions(done, "__consumer_offsets")
    refused = tool("topics", "alter", "__consumer_offsets", "-p", str(count + 1))
    assert (refused.returncode, partitions(done, "__consumer_offsets")) == (2, count)
    assert "lose what they committed" in refused.stderr


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_keys_are_asked_about(tool: Tool, done: Done, topic: str, codec: str) -> None:
    done("produce", topic, "--key-separator", ":", "--compression", codec, stdin="k:v\n")
    question = (
        f"records of {topic} have keys, so with 3 partitions new records go to others than older ones of the same key"
    )
    refused = tool("topics", "alter", topic, "-p", "3")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"moldau topics: {question}; add them? ")
    assert partitions(done, topic) == 2
    assert done("topics", "alter", topic, "-p", "3", "--yes") == f"altered {topic} partitions=3\n"


def test_so_is_a_compacted_topic_on_a_terminal(bootstrap: str, done: Done, moldau_topic: str) -> None:
    done("topics", "create", moldau_topic, "-p", "1", "-c", "cleanup.policy=compact")
    no = at_terminal(bootstrap, "", "topics", "alter", moldau_topic, "-p", "2")
    assert (no.returncode, no.stdout) == (1, "")
    assert no.stderr.startswith(f"{moldau_topic} is compacted, so with 2 partitions new records go to others")
    assert no.stderr.endswith("add them? [y/N] moldau topics: nothing was done\n")
    yes = at_terminal(bootstrap, "y", "topics", "alter", moldau_topic, "-p", "2")
    assert (yes.returncode, yes.stdout) == (0, f"altered {moldau_topic} partitions=2\n")


def test_an_internal_topic_is_asked_about_whatever_was_said(bootstrap: str, done: Done, topic: str) -> None:
    name = f"__{topic}"
    done("topics", "create", name)
    no = at_terminal(bootstrap, "n", "topics", "delete", name, "--yes")
    assert (no.returncode, no.stdout) == (1, "")
    assert no.stderr.startswith(f"delete {name}, which the cluster itself needs? [y/N] ")
    assert at_terminal(bootstrap, "yes", "topics", "delete", name, "--yes").stdout == f"deleted {name}\n"


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        ("alter {topic}", 2, "what shall be altered? There are --partitions, --config and --delete-config"),
        ("alter {topic} -p 2", 1, "topic '{topic}' has 2 partitions; it can only get more"),
        ("alter {topic}x -p 3", 1, "topic '{topic}x' does not exist; did you mean {topic}?"),
        ("alter {topic} -c retention.ms", 2, "--config: expected KEY=VALUE, not 'retention.ms'"),
        (
            "trim {topic} --before soon",
            2,
            "--before: 'soon' is no offset; expected a number, @TIME such as @-1d, or end",
        ),
        ("trim {topic} --before end -p 2", 1, "topic '{topic}' has no partition 2; it has 2, counted from 0"),
        (
            "trim {topic} --before 5",
            1,
            "partition 0 of '{topic}' ends at 0; nothing was done: choose partitions by -p, or an offset that all of"
            " them have",
        ),
    ],
)
def test_what_cannot_be_is_one_line(tool: Tool, topic: str, words: str, exit_code: int, message: str) -> None:
    ended = tool("topics", *words.format(topic=topic).split())
    assert (ended.returncode, ended.stdout) == (exit_code, "")
    assert ended.stderr == f"moldau topics: {message.format(topic=topic)}\n"


def test_trimming_deletes_the_oldest_records(bootstrap: str, tool: Tool, done: Done, topic: str) -> None:
    done("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    done("produce", topic, "--partition", "1", stdin="d\n")
    kept = tool("topics", "trim", topic, "--before", "2", "-p", "0")
    assert (kept.returncode, kept.stdout) == (2, "")
    assert kept.stderr.startswith(f"moldau topics: delete the oldest 2 records of {topic}, for good? ")
    assert starts(done, topic) == [0, 0]
    trimmed = at_terminal(bootstrap, "y", "topics", "trim", topic, "--before", "2", "-p", "0")
    assert trimmed.stdout.splitlines() == ["PARTITION  START  DELETED", "0          2      2"]
    assert done("topics", "trim", topic, "--before", "@2000-01-01", "-o", "jsonl").splitlines() == [
        '{"partition": 0, "start": 2, "deleted": 0}',
        '{"partition": 1, "start": 0, "deleted": 0}',
    ]
    assert done("topics", "trim", topic, "--before", "end", "-y", "-o", "csv") == (
        "partition,start,deleted\n0,3,1\n1,1,1\n"
    )
    assert starts(done, topic) == [3, 1]


def test_a_compacted_topic_is_not_trimmed(tool: Tool, done: Done, moldau_topic: str) -> None:
    done("topics", "create", moldau_topic, "-p", "1", "-c", "cleanup.policy=compact")
    done("produce", moldau_topic, "--key-separator", ":", stdin="k:v\n")
    refused = tool("topics", "trim", moldau_topic, "--before", "end", "--yes")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"moldau topics: partition 0 of {moldau_topic!r}: only topics with cleanup.policy=delete can be trimmed; a"
        " compacted one loses keys by records without a value\n"
    )
