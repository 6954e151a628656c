"""Our verifiable clients, judged as tests/suites judges Apache Kafka's."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cli.conftest import Tool, command
from tests.suites.verifiable import Member, judged

Done = Callable[..., str]
NewMember = Callable[..., Member]

CLASSIC = ("--group-protocol", "classic")
CONSUMER = ("--group-protocol", "consumer")
PROTOCOLS = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
ASSIGNOR = "org.apache.kafka.clients.consumer."


class OwnMember(Member):
    def _command(self, *options: str) -> list[str]:
        return command("verifiable-consumer", *options)


@pytest.fixture
def member(bootstrap: str, moldau_topic: str) -> Iterator[NewMember]:
    with ExitStack() as members:

        def start(topic: str, *options: str) -> Member:
            return members.enter_context(
                OwnMember(bootstrap, "--topic", topic, "--group-id", f"group-{moldau_topic}", *options)
            )

        yield start


def events(printed: str, name: str) -> list[dict[str, Any]]:
    return [event for event in map(json.loads, printed.splitlines()) if event["name"] == name]


def produce(tool: Tool, topic: str, count: int, *options: str) -> list[dict[str, Any]]:
    return judged(tool("verifiable-producer", "--topic", topic, "--max-messages", str(count), *options), count)


@pytest.mark.parametrize("acks", ["0", "-1"])
def test_every_record_is_acknowledged(tool: Tool, moldau_topic: str, acks: str) -> None:
    sent = produce(tool, moldau_topic, 200, "--acks", acks)
    assert [int(each["value"]) for each in sent] == list(range(200))
    assert [*sent[0]] == ["timestamp", "name", "key", "value", "offset", "topic", "partition"]
    assert acks == "0" or [each["offset"] for each in sent] == list(range(200))


def test_what_was_sent_is_read(tool: Tool, done: Done, topic: str) -> None:
    sent = produce(tool, topic, 9, "--repeating-keys", "3", "--value-prefix", "7", "--message-create-time", "1000")
    assert {(each["key"], each["value"]) for each in sent} == {(str(n % 3), f"7.{n}") for n in range(9)}
    told = done("verifiable-consumer", "--topic", topic, "--group-id", topic, "--max-messages", "9", "--verbose")
    read = events(told, "record_data")
    assert sorted((each["key"], each["value"]) for each in read) == sorted((e["key"], e["value"]) for e in sent)
    assert [*read[0]] == ["timestamp", "name", "key", "value", "topic", "partition", "offset"]
    assigned = events(told, "partitions_assigned")[-1]["partitions"]
    assert sorted(assigned, key=lambda each: each["partition"]) == [{"topic": topic, "partition": n} for n in (0, 1)]
    assert sum(each["count"] for each in events(told, "records_consumed")) == 9
    assert all(each["success"] for each in events(told, "offsets_committed"))
    assert [json.loads(line)["name"] for line in told.splitlines()][-1] == "shutdown_complete"


@PROTOCOLS
def test_members_share_partitions_and_take_over(
    tool: Tool, topic: str, member: NewMember, protocol: tuple[str, ...]
) -> None:
    assignor = ("--assignment-strategy", f"{ASSIGNOR}CooperativeStickyAssignor") if protocol is CLASSIC else ()
    first, second = member(topic, *protocol, *assignor), member(topic, *protocol, *assignor)
    first.wait_for(lambda: len(first.partitions) == 1 and len(second.partitions) == 1, "one partition each")
    produce(tool, topic, 100, "--repeating-keys", "20")
    first.wait_for(lambda: first.consumed + second.consumed == 100, "all records")
    second.stop()
    first.wait_for(lambda: first.partitions == {0, 1}, "the partition of the one that left")


def test_it_stops_when_it_is_told_to(bootstrap: str, moldau_topic: str) -> None:
    words = ("verifiable-producer", "--bootstrap-server", bootstrap, "--topic", moldau_topic, "--throughput", "50")
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGTERM)
        told += process.stdout.readlines()
    assert process.returncode == 0
    assert [json.loads(line)["name"] for line in told[-2:]] == ["shutdown_complete", "tool_data"]
    (summary,) = events("".join(told), "tool_data")
    assert summary["sent"] == summary["acked"] == len(events("".join(told), "producer_send_success"))


def test_what_is_refused_is_told_and_counted(tool: Tool) -> None:
    finished = tool("verifiable-producer", "--topic", "no/topic", "--max-messages", "1")
    (failed,) = events(finished.stdout, "producer_send_error")
    assert failed["exception"] == "class org.apache.kafka.common.errors.InvalidTopicException"
    assert (failed["key"], failed["value"], failed["topic"]) == (None, "0", "no/topic")
    assert events(finished.stdout, "tool_data")[0]["acked"] == 0


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("verifiable-producer",), 2, "required: --topic"),
        (("verifiable-producer", "--topic", "t", "--acks", "2"), 2, "unknown value 2 of --acks"),
        (("verifiable-producer", "--topic", "t", "--throughput", "0"), 2, "--throughput 0 sends nothing"),
        (
            ("verifiable-producer", "--topic", "t", "--bootstrap-server", "127.0.0.1:1"),
            1,
            "no broker answers at 127.0.0.1:1",
        ),
        (("verifiable-consumer", "--topic", "t"), 2, "required: --group-id"),
        (
            ("verifiable-consumer", "--topic", "t", "--group-id", "g", "--assignment-strategy", "a.StickyAssignor"),
            2,
            "unknown assignor 'a.StickyAssignor'",
        ),
        (("verifiable-consumer", "--topic", "t", "--group-id", "g", "--reset-policy", "x"), 2, "unknown value 'x'"),
    ],
)
def test_bad_use(tool: Tool, words: tuple[str, ...], exit_code: int, said: str) -> None:
    finished = tool(*words)
    assert (finished.returncode, len(finished.stderr.splitlines())) == (exit_code, 1)
    assert said in finished.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--reset-policy", "none"), "no previously committed offset"),
        (("--session-timeout", "4000"), "session timeout"),
        (("--group-protocol", "consumer", "--group-remote-assignor", "nosuch"), "assignor"),
    ],
)
def test_a_member_ends_when_nothing_more_will_come(tool: Tool, topic: str, options: tuple[str, ...], told: str) -> None:
    ended = tool("verifiable-consumer", "--topic", topic, "--group-id", f"{topic}-ending", *options)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert told in ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1])["name"] == "shutdown_complete"


@pytest.mark.parametrize("name", ["bad topic!", ""])
def test_a_member_ends_where_a_topic_can_not_be(tool: Tool, name: str) -> None:
    ended = tool("verifiable-consumer", "--topic", name, "--group-id", "no-topic")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert json.loads(ended.stdout.splitlines()[-1])["name"] == "shutdown_complete"


def test_keys_go_where_javas_producer_puts_them(done: Done, topic: str) -> None:
    """`produce` has Java's partitioner, which other tests judge."""
    name = f"{topic}-keys"
    done("topics", "create", name, "--partitions", "6")
    done("verifiable-producer", "--max-messages", "12", "--repeating-keys", "12", "--topic", name)
    done("produce", name, "--key-separator", ":", stdin="".join(f"{n}:x\n" for n in range(12)))
    read = done("consume", name, "--from-beginning", "-e", "-f", "%k %p\n").split("\n")
    assert len({*filter(None, read)}) == 12
