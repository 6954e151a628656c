"""`moldau dead-letters`: what was refused, and its way back."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Tool

HEADERS = {
    "topic": "",
    "partition": "1",
    "offset": "7",
    "timestamp": "1700000000000",
    "query": "q",
    "reason": "no JSON",
}


def test_letters_are_listed_and_sent_back_once(done: Callable[..., str], tool: Tool, topic: str) -> None:
    told = {**HEADERS, "topic": topic}
    headers = [[f"moldau.dead-letter.{name}", value] for name, value in told.items()]
    letters = f"{topic}.dead-letters"
    done("topics", "create", letters)
    done("produce", letters, "-i", "json", stdin=json.dumps({"key": "k", "value": "v", "headers": headers}) + "\n")
    done("produce", letters, stdin="no letter\n")
    listed = tool("dead-letters", "list", letters)
    assert listed.returncode == 0
    assert listed.stdout.splitlines()[1].split() == [topic, "1", "7", "no", "JSON", "v"]
    assert listed.stderr == f"1 records in {letters} are no dead letters\n"
    assert json.loads(tool("dead-letters", "list", letters, "-o", "json").stdout)[0]["query"] == "q"
    sent = done("dead-letters", "send-back", letters)
    assert sent == f"sent 1 back to {topic}\n1 records in {letters} are no dead letters and stay\n"
    assert done("dead-letters", "send-back", letters) == f"nothing in {letters} that was not sent back before\n"
    record = json.loads(done("consume", topic, "--from-beginning", "-e", "-o", "json"))
    assert (record["key"], record["value"], record["partition"], record["timestamp"]) == (
        "k",
        "v",
        1,
        1_700_000_000_000,
    )


def test_a_topic_that_is_not_there(tool: Tool, moldau_topic: str) -> None:
    for action in ("list", "send-back"):
        ended = tool("dead-letters", action, moldau_topic)
        assert (ended.returncode, ended.stderr) == (1, f"moldau dead-letters: there is no topic {moldau_topic}\n")
