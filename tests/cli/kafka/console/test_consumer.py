"""`moldau console-consumer` and `console-producer` as processes, on a broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.cli.main import main
from tests.cli.conftest import Tool

Done = Callable[..., str]
ALL = ("--from-beginning", "--timeout-ms", "1000")
ALL_COLUMNS = [
    word
    for name in ("partition", "offset", "headers", "key")
    for word in ("--formatter-property", f"print.{name}=true")
]
KEYED = ("--reader-property", "parse.key=true")


@pytest.fixture
def one(done: Done, moldau_topic: str) -> str:
    done("topics", "create", moldau_topic)
    return moldau_topic


def test_properties_under_both_names(done: Done, tool: Tool, one: str) -> None:
    properties = ("parse.key=true", "parse.headers=true", "null.marker=NIL", "key.separator=|")
    for option in ("--property", "--reader-property"):
        words = [word for each in properties for word in (option, each)]
        sent = tool("console-producer", "--topic", one, *words, stdin="a:1,b:NIL\tk|v\nNIL\tNIL|NIL\n")
        assert (sent.returncode, sent.stdout) == (0, "")
    lines = ["Partition:0\tOffset:{}\ta:1,b:null\tk\tv", "Partition:0\tOffset:{}\tNO_HEADERS\tnull\tnull"]
    expected = [line.format(2 * turn + at) for turn in range(2) for at, line in enumerate(lines)]
    read = tool("console-consumer", "--topic", one, "--from-beginning", "--max-messages", "4", *ALL_COLUMNS)
    assert (read.returncode, read.stdout.splitlines()) == (0, expected)
    assert read.stderr == "Processed a total of 4 messages\n"


def test_a_line_without_a_key_ends_it_after_those_before(done: Done, tool: Tool, one: str) -> None:
    sent = tool("console-producer", "--topic", one, *KEYED, stdin="a\tb\nc\n")
    assert (sent.returncode, sent.stderr) == (
        1, "moldau console-producer: No key separator found on line number 2: 'c'\n",
    )  # fmt: skip
    ignored = tool("console-producer", "--topic", one, *KEYED, "--reader-property", "ignore.error=true", stdin="c\n")
    assert ignored.returncode == 0
    assert done("consume", one, "--from-beginning", "-e").split() == ["b", "c"]


@pytest.mark.parametrize(
    "options",
    [
        ("--sync", "--compression-codec"),
        ("--compression-codec", "zstd", "--batch-size", "100", "--timeout", "5", "--request-required-acks", "1"),
    ],
)
def test_options_of_the_producer(done: Done, one: str, options: tuple[str, ...]) -> None:
    done("console-producer", "--topic", one, *options, stdin="a\rb\r\nc\n")
    assert done("consume", one, "--from-beginning", "-e") == "a\nb\nc\n"


def test_formatters_that_print_no_value(done: Done, tool: Tool, one: str) -> None:
    done("console-producer", "--topic", one, stdin="a\n")
    for name in ("kafka.tools.NoOpMessageFormatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter"):
        silent = tool("console-consumer", "--topic", one, *ALL, "--formatter", name)
        assert (silent.stdout, silent.stderr) == ("", "Processed a total of 1 messages\n")
    logged = tool(
        "console-consumer", "--topic", one, *ALL, "--formatter", "kafka.tools.LoggingMessageFormatter"
    )  # fmt: skip
    assert logged.stdout == "a\n"
    assert ", key:null value:a (" in logged.stderr
    summed = tool("console-consumer", "--topic", one, *ALL, "--formatter", "kafka.tools.ChecksumMessageFormatter")
    assert summed.stdout.startswith("checksum:")


def test_a_record_that_cannot_be_shown(done: Done, tool: Tool, one: str) -> None:
    done("console-producer", "--topic", one, stdin="a\n8 bytes.\n")
    words = ("console-consumer", "--topic", one, *ALL)
    long = ("--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer")
    ended = tool(*words, *long)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "offset 0: Size of data received is not 8; --skip-message-on-error goes on" in ended.stderr
    skipped = tool(*words, *long, "--skip-message-on-error", "--enable-systest-events")
    assert (skipped.returncode, skipped.stdout) == (0, f"{int.from_bytes(b'8 bytes.')}\nshutdown_complete\n")


def test_own_formatters_and_deserializers(bootstrap: str, done: Done, one: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def shout(record): return record.value.decode().upper() + '!\\n'\n"
        "class Cut:\n"
        "    def __init__(self, properties): self.size = int(properties['size'])\n"
        "    def __call__(self, content): return content[: self.size]\n"
        "def skip(record): pass\n"
        "def fail(record): raise ValueError('no\\nway')\n"
    )
    done("console-producer", "--topic", one, stdin="hello\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "moldau", "console-consumer", "--topic", one, *ALL, *words],
            env={**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": bootstrap},
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert run("--formatter", "own:shout").stdout == "HELLO!\n"
    assert run("--formatter", "own:skip").stdout == ""
    own = ("--value-deserializer", "own:Cut", "--formatter-property", "value.deserializer.size=2")
    assert run(*own).stdout == "he\n"
    failed = run("--formatter", "own:fail")
    told = f"moldau console-consumer: {one}-0 offset 0: no; way; --skip-message-on-error goes on"
    assert (failed.returncode, failed.stderr.splitlines()[1:]) == (1, [told])
    missing = run("--formatter", "own:whisper")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("raise ValueError('no way')", "ValueError: no way"),
        ("yield 5", "TypeError: cannot unpack non-iterable int object"),
        ("yield None, 5", "TypeError: key and value are bytes, text or None, not None and 5"),
    ],
)
def test_an_own_reader_that_fails(bootstrap: str, one: str, tmp_path: Path, body: str, complaint: str) -> None:
    (tmp_path / "own.py").write_text(f"def read(chunks):\n    {body}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "moldau", "console-producer", "--topic", one, "--line-reader", "own:read"],
        env={**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": bootstrap},
        cwd=tmp_path, input="a\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (1, f"moldau console-producer: --line-reader own:read: {complaint}\n")


def test_a_group_commits_and_its_offsets_are_shown(done: Done, tool: Tool, one: str) -> None:
    done("console-producer", "--topic", one, stdin="a\nb\nc\n")
    group = ("console-consumer", "--topic", one, "--group", f"g-{one}", "--from-beginning", "--max-messages")
    assert tool(*group, "2").stdout == "a\nb\n"
    assert tool(*group, "1").stdout == "c\n"
    shown = tool(
        "console-consumer", "--topic", "__consumer_offsets", *ALL,
        "--formatter", "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    ).stdout  # fmt: skip
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(shown):
        record, at = decoder.raw_decode(shown, at)
        if record["key"]["data"]["group"] == f"g-{one}":
            found.append(record["value"]["data"]["offset"])
    assert found[-1] == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "Exactly one of the following arguments is required: --topic, --include"),
        (("--topic", "a", "--include", "b"), "Exactly one of the following arguments is required"),
        (("--topic", "a", "--offset", "3"), "The partition is required when offset is specified."),
        (("--topic", "a", "--partition", "0", "--offset", "-3"), "The provided offset value '-3' is incorrect."),
        (("--topic", "a", "--partition", "0", "--offset", "soon"), "The provided offset value 'soon' is incorrect."),
        (("--topic", "a", "--partition", "0", "--group", "g"), "Options group and partition cannot be specified"),
        (("--topic", "a", "--formatter", "kafka.tools.DefaultMessageFormater"), "unknown formatter"),
        (("--topic", "a", "--formatter-property", "print.key"), "--formatter-property: expected KEY=VALUE"),
        (("--topic", "a", "--value-deserializer", "Nothing"), "unknown deserializer 'Nothing'"),
        (("--topic", "a", "--colour"), "unknown option --colour"),
    ],
)  # fmt: skip
def test_wrong_options(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str) -> None:
    assert main(["console-consumer", *words]) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "required: --topic"),
        (("--topic", "a", "--line-reader", "Nothing"), "unknown reader 'Nothing'"),
        (("--topic", "a", "--property", "key.separator=,", "--property", "null.marker=,"), "may not be equal"),
        (("--topic", "a", "--reader-property", "key.separator="), "key.separator: expected some text"),
    ],
)  # fmt: skip
def test_wrong_options_of_the_producer(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    assert main(["console-producer", *words]) == 2
    assert complaint in capsys.readouterr().err.splitlines()[-1]
