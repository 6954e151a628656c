"""`moldau produce` against a running broker."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tool, command, environment

Done = Callable[..., str]
WAIT_S_MAX = 30.0


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


def test_times_that_no_calendar_has_come_back(done: Done, moldau_topic: str) -> None:
    any_time = [word for side in ("before", "after") for word in ("-c", f"message.timestamp.{side}.max.ms={2**63 - 1}")]
    times = [-62_135_596_800_000, 1, 2**31, 253_402_300_800_000, 2**62]
    lines = "\n".join(json.dumps({"value": None, "timestamp": each}) for each in times)
    for name in (moldau_topic, f"{moldau_topic}-copy"):
        done("topics", "create", name, *any_time)
        done("produce", name, "-i", "json", stdin=lines)
        lines = done("consume", name, "--from-beginning", "-e", "-o", "json")
        assert [json.loads(line)["timestamp"] for line in lines.splitlines()] == times


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
    assert finished.stderr.count("\n") == 1
    assert f"moldau topics alter {moldau_topic} --config max.message.bytes=" in finished.stderr
    assert "message.max.bytes" in finished.stderr


def test_a_tab_can_be_typed_as_an_escape(done: Done, topic: str) -> None:
    done("produce", topic, "-K", r"\t", stdin="k\tv\n")
    assert [(record["key"], record["value"]) for record in read_all(done, topic)] == [("k", "v")]


def test_files_delimiters_and_whole_files(done: Done, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1;2\n;3")
    (tmp_path / "b").write_bytes(b"4\n\n5\n")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    done("produce", topic, "-p", "0", "--delimiter", ";", "-F", a)
    done("produce", topic, "-p", "0", "-F", b, "-F", a)
    done("produce", topic, "-p", "0", "--whole", "-F", a, b, "--timestamp", "1700000000000")
    records = read_all(done, topic)
    assert [record["value"] for record in records] == [
        "1", "2\n", "3", "4", "", "5", "1;2", ";3", "1;2\n;3", "4\n\n5\n",
    ]  # fmt: skip
    assert [record["timestamp"] for record in records[-2:]] == [1_700_000_000_000] * 2


def test_a_line_longer_than_any_buffer(done: Done, topic: str) -> None:
    line = "x" * 300_000
    done("produce", topic, "-p", "0", "--delimiter", "<>", stdin=f"{line}<>{line}<")
    assert [record["value"] for record in read_all(done, topic)] == [line, f"{line}<"]


def test_tombstones(done: Done, topic: str) -> None:
    done("produce", topic, "--tombstone", stdin="a\n")
    assert [(record["key"], record["value"]) for record in read_all(done, topic)] == [("a", None)]


def test_reports_come_before_the_input_ends(bootstrap: str, topic: str) -> None:
    arguments = command("produce", topic, "-p", "0", "-o", "json")
    with subprocess.Popen(
        arguments, env=environment(bootstrap), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for offset in range(2):
            writer.stdin.write(b"a\n")
            writer.stdin.flush()
            assert json.loads(writer.stdout.readline()) == {"topic": topic, "partition": 0, "offset": offset}
        writer.stdin.close()
        assert writer.wait(WAIT_S_MAX) == 0


def test_a_transaction_is_all_or_nothing(done: Done, tool: Tool, topic: str) -> None:
    done("produce", topic, "-p", "0", "--transaction", stdin="a\nb\n")
    failed = tool("produce", topic, "-p", "0", "-i", "json", "--transaction", stdin='{"value": "c"}\nwrong\n')
    assert failed.returncode == 2
    committed = ("--from-beginning", "-e", "--isolation-level", "read_committed")
    assert done("consume", topic, *committed).split() == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_aborts_a_transaction(bootstrap: str, done: Done, topic: str, number: signal.Signals) -> None:
    arguments = command("produce", topic, "-p", "0", "-o", "json", "--transaction")
    with subprocess.Popen(
        arguments,
        env=environment(bootstrap),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write(b"a\n")
        writer.stdin.flush()
        assert writer.stdout.readline() != b""
        assert done("consume", topic, "--from-beginning", "-e") == "a\n"
        writer.send_signal(number)
        _, complaints = writer.communicate(timeout=WAIT_S_MAX)
    assert (writer.returncode, complaints) == (128 + number, b"")
    # What comes later is read, too: nothing holds the reader back.
    done("produce", topic, "-p", "0", stdin="b\n")
    assert done("consume", topic, "--from-beginning", "-e", "--isolation-level", "read_committed") == "b\n"


@pytest.mark.parametrize("options", [(), ("--transaction",)], ids=str)
def test_reports_that_nobody_reads_hold_up_no_record(
    bootstrap: str, done: Done, topic: str, options: tuple[str, ...]
) -> None:
    with subprocess.Popen(
        command("produce", topic, "-p", "0", "-o", "json", *options),
        env=environment(bootstrap),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdout.close()
        writer.stdin.write(b"a\n" * 20_000)
        writer.stdin.close()
        assert writer.wait(WAIT_S_MAX) == 0
    assert done("consume", topic, "--from-beginning", "-e", "--isolation-level", "read_committed") == "a\n" * 20_000


def test_a_header_whose_name_would_be_cut(done: Done, tool: Tool, topic: str) -> None:
    refused = tool("produce", topic, "-i", "json", stdin='{"value": "a", "headers": [["a\\u0000b", "c"]]}\n')
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert done("consume", topic, "--from-beginning", "-e") == ""


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("-F", "/no/such/file"), "cannot read /no/such/file: No such file or directory"),
        (("-F", "/tmp"), "cannot read /tmp: Is a directory"),
        (("-K", r"\q"), r"unknown escape \q"),
        (("-F", "/"), "cannot read /: Is a directory"),
        (("--timestamp", "soon"), "--timestamp: 'soon' is no time"),
        (("--timestamp", "-99999d"), "--timestamp: '-99999d' is before 1970"),
        (("--tombstone", "-K", ":"), "--tombstone takes each line for a key"),
        (("--transaction", "--acks", "1"), "--transaction needs --acks all"),
    ],
)
def test_wrong_options_are_found_before_anything_is_sent(
    done: Done, tool: Tool, topic: str, options: tuple[str, ...], complaint: str
) -> None:
    finished = tool("produce", topic, *options, stdin="a:b\n")
    assert (finished.returncode, finished.stderr.count("\n")) == (2, 1)
    assert complaint in finished.stderr
    assert done("consume", topic, "--from-beginning", "-e") == ""
