"""Wrong command lines, clusters that say no and nobody who answers: one line, an exit code, nothing changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, command, environment, run_tool

ONE_ACTION = "Command must include exactly one action: --list, --describe, --create, --alter or --delete"


def failed(name: str, message: str, *, with_help: bool = False) -> str:
    """`moldau topics --help` tells of our own actions."""
    script = "kafka-topics" if name == "topics" else name
    return f"moldau {name}: {message}{f'; see: moldau {script} --help' if with_help else ''}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("topics --list --describe", ONE_ACTION),
        ("topics --topic t", ONE_ACTION),
        ("topics --delete", 'Missing required argument "[topic]"'),
        ("topics --alter --topic t", 'Missing required argument "[partitions]"'),
        ("topics --list --partitions 2", 'Option "[partitions]" can\'t be used with option "[list]"'),
        (
            "topics --create --topic t --replica-assignment 0 --partitions 1",
            'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
        ),
        ("topics --list --tpoic t", "unknown option --tpoic; did you mean --topic?"),
        ("topics --create --topic t --partitions two", "argument --partitions: invalid int value: 'two'"),
        ("configs --describe --alter --topic t", "Command must include exactly one action: --describe, --alter"),
        (
            "configs --describe --topic t --add-config a=b",
            'Option "[describe]" can\'t be used with option "[add-config]"',
        ),
        ("get-offsets --tpoic t", "unknown option --tpoic; did you mean --topic?"),
        ("delete-records", "the following arguments are required: --offset-json-file"),
    ],
)
def test_wrong_options(arguments: str, message: str) -> None:
    name = arguments.split(maxsplit=1)[0]
    ended = run_tool("127.0.0.1:1", *arguments.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", failed(name, message, with_help=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("topics --describe --topic-id nope", "--topic-id: 'nope' holds 3 bytes; a uuid has 16"),
        ("topics --create --topic t --replica-assignment 0:0", "Partition replica lists may not contain"
         " duplicate entries: 0"),
        ("topics --create --topic t --partitions 0", "The partitions must be greater than 0"),
        ("configs --describe", "At least one entity type must be specified"),
        ("configs --describe --broker x", "The entity name for brokers must be a valid integer broker id, but it"
         " is: x"),
        ("configs --alter --topic t --add-config a", "Invalid entity config: all configs to be added must be in the"
         ' format "key=val" or  "key=[val1,val2]" to group values which contain commas.'),
        ("configs --alter --topic t --add-config-file /nope", "cannot read /nope: No such file or directory"),
        ("get-offsets --topic-partitions t:x", "Invalid rule specification: t:x"),
        ("get-offsets --topic [a", "[a is an invalid regex."),
        ("delete-records --offset-json-file /nope", "Unable to read file /nope: No such file or directory"),
    ],
)  # fmt: skip
def test_wrong_values(bootstrap: str, arguments: str, message: str) -> None:
    """The broker is there; nothing of this reaches it."""
    name = arguments.split(maxsplit=1)[0]
    ended = run_tool(bootstrap, *arguments.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", failed(name, message))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("topics --describe --topic nope", "Topic 'nope' does not exist as expected"),
        ("topics --delete --topic nope", "Topic 'nope' does not exist as expected"),
        ("configs --alter --topic nope --add-config retention.ms=1", "The topic 'nope' does not exist."),
        ("get-offsets --topic nope", "Could not match any topic-partitions with the specified filters"),
    ],
)
def test_unknown_topics(tool: Tool, arguments: str, message: str) -> None:
    ended = tool(*arguments.split())
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", failed(arguments.split(maxsplit=1)[0], message))


@pytest.mark.parametrize("arguments", ["topics --list", "configs --describe --topic t", "get-offsets --topic t"])
def test_nobody_answers(arguments: str) -> None:
    ended = run_tool("127.0.0.1:1", *arguments.split())
    told = "no broker answers at 127.0.0.1:1; start one with: moldau start"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", failed(arguments.split(maxsplit=1)[0], told))


@pytest.mark.parametrize("name", ["topics", "configs", "get-offsets"])
def test_bytes_that_are_no_text(bootstrap: str, name: str) -> None:
    words: list[str | bytes] = [*command(name, "--topic"), b"\xff"]
    ended = subprocess.run(words, env=environment(bootstrap), capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr == b"moldau: argument 3 is no text in UTF-8: b'\\xff'\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no", "The input string is not a valid JSON"),
        ("[]", "Expected JSON object, received []"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"version": 1}', "Missing partitions field"),
        ('{"partitions": 3}', "Expected JSON array, received 3"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "No such field exists: `offset`"),
        ('{"partitions": [{"topic": "t", "partition": "0", "offset": 1}]}', 'Expected `Integer` value, received "0"'),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 1.5}]}', "Expected `Long` value, received 1.5"),
    ],
)
def test_a_file_that_names_no_offsets(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    ended = run_tool("127.0.0.1:1", "delete-records", "--offset-json-file", str(file))
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", failed("delete-records", message))
