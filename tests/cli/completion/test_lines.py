"""What a Tab offers, without a shell: lines of bash, the walk through a parser, silence where nobody answers."""

from __future__ import annotations

import socket
import subprocess
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import moldau.__main__
from moldau.cli.completion.answering import answered, parser_of_tool
from moldau.cli.completion.bash_line import parsed, written
from moldau.cli.completion.kinds import Kind
from moldau.cli.completion.names import ANSWER_S
from moldau.cli.completion.shapes import shape_of
from moldau.cli.completion.walking import Walk
from moldau.cli.parsing import Parser
from moldau.cli.tools import TOOLS
from tests.cli.conftest import command, environment

BREAKS = " \t\n\"'@><=;|&(:"
STALE_S_MAX = 60.0


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("line", "words", "candidate", "text"),
    [
        ("moldau topics describe or", ["moldau", "topics", "describe", "or"], "orders", "orders"),
        ("moldau topics ", ["moldau", "topics", ""], "list", "list"),
        ("moldau x a\\ b", ["moldau", "x", "a b"], "a b'c", "a\\ b\\'c"),
        ("moldau x 'a b", ["moldau", "x", "a b"], "a bc", "a bc"),
        ("moldau x 'a b", ["moldau", "x", "a b"], "a b'c", None),
        ('moldau x "a b', ["moldau", "x", "a b"], 'a b$"c', 'a b\\$\\"c'),
        ("moldau x billing:", ["moldau", "x", "billing:"], "billing:eu", "eu"),
        ("moldau x --output=ya", ["moldau", "x", "--output=ya"], "--output=yaml", "yaml"),
        ("moldau x billing:e", ["moldau", "x", "billing:e"], "other", None),
        ("moldau x 'a'b", ["moldau", "x", "ab"], "abc", "abc"),
    ],
)
def test_a_line_of_bash(line: str, words: list[str], candidate: str, text: str | None) -> None:
    found = parsed(line, BREAKS)
    assert found.words == words
    assert written(candidate, found) == text


def offered(*words: str) -> list[str]:
    """What zsh is told, without the help."""
    return [line.partition("\t")[0] for line in answered(["zsh", "moldau", *words], moldau.__main__.parser_of)[1:]]


def taken(*words: str) -> str:
    return answered(["zsh", "moldau", *words], moldau.__main__.parser_of)[0]


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (["to"], ["topics"]),
        (["kafka-topi"], ["kafka-topics.sh"]),
        (["--prof"], ["--profile"]),
        (["-b", "h:1", "to"], ["topics"]),
        (["topics", "de"], ["describe", "delete"]),
        (["topics", "--desc"], ["--describe"]),
        (["topics", "--list", "--exclude-i"], ["--exclude-internal"]),
        (["topics", "create", "x", "--conf"], ["--config"]),
        (["topics", "create", "x", "-c", "retention.m"], ["retention.ms="]),
        (["topics", "create", "x", "--config=retention.m"], ["--config=retention.ms="]),
        (["topics", "list", "--output", "js"], ["json", "jsonl"]),
        (["configs", "--entity-t"], ["--entity-type"]),
        (["configs", "--alter", "--broker", "0", "--add-config", "log.cleaner.th"], ["log.cleaner.threads="]),
        (["configs", "--alter", "--entity-type", "ips", "--add-config", ""], ["connection_creation_rate="]),
        (["configs", "--alter", "--topic", "t", "--delete-config", "segment.ms,retention.m"],
         ["segment.ms,retention.ms"]),
        (["transactions", "--bootstrap-server", "h:1", "find"], ["find-hanging"]),
        (["start", "--log-level", "WARN"], ["WARNING"]),
        (["start", "--override", "num.part"], ["num.partitions="]),
        (["help", "leader"], ["leader-election"]),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_offered(words: list[str], some: list[str]) -> None:
    assert offered(*words) == some


@pytest.mark.parametrize(
    ("words", "by"),
    [(["produce", "x", "-F", "a"], "files"), (["start", ""], "files"), (["start", "--data-dir", "a"], "folders"),
     (["shell-scripts", ""], "folders"), (["topics", "create", "x", "-c", "a"], "nospace"), (["topics", "li"], "")],
)  # fmt: skip
def test_what_the_shell_does_itself(words: list[str], by: str) -> None:
    assert taken(*words) == by


def test_an_option_that_was_given_is_offered_again_only_if_it_may_be_repeated() -> None:
    assert "--if-not-exists" not in offered("topics", "create", "x", "--if-not-exists", "--")
    assert "--config" in offered("topics", "create", "x", "--config", "a=b", "--")


def test_names_of_profiles(tmp_path: Path) -> None:
    (tmp_path / "config" / "moldau").mkdir(parents=True)
    (tmp_path / "config" / "moldau" / "config.toml").write_text("[profiles.staging]\n[profiles.prod]\n")
    assert offered("topics", "list", "--profile", "") == ["prod", "staging"]
    assert offered("--profile", "st") == ["staging"]
    assert offered("profile", "use", "p") == ["prod"]


def test_the_tool_is_only_asked_when_it_has_changed(tmp_path: Path) -> None:
    asked = []

    def parser_of(module: str) -> ArgumentParser:
        asked.append(module)
        return parser_of_tool(module)

    for _ in range(2):
        assert len(answered(["zsh", "moldau", "topics", "--list", "--"], parser_of)) > 10
    assert sorted(asked) == ["", "moldau.cli.kafka.topics.command"]


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_says_its_command_line_without_doing_anything(name: str) -> None:
    tool = TOOLS[name]
    for module in filter(None, (tool.module, tool.kafka)):
        shape = shape_of(parser_of_tool(module))
        assert shape.arguments or shape.actions
        assert Walk(shape).place("-").options


def test_names_that_need_the_cluster_are_marked_in_every_tool() -> None:
    """An argument by one of these names is a name that the cluster knows, unless it is to be a new one."""
    kinds = {"--topic": Kind.TOPICS, "--group": Kind.GROUPS, "--transactional-id": Kind.TRANSACTIONAL_IDS}
    new = {("producer-perf", "--transactional-id"), ("produce", "--transactional-id"), ("plan", "--topic")}
    missing = []
    for name, tool in TOOLS.items():
        for module in filter(None, (tool.module, tool.kafka)):
            shapes = [shape_of(parser_of_tool(module))]
            shapes += [inner for _, inner in shapes[0].actions.values()]
            missing += [
                (name, option)
                for shape in shapes
                for each in shape.arguments
                for option in {*each.names} & {*kinds}
                if each.kind != kinds[option] and (name, option) not in new
            ]
    assert missing == []


@pytest.fixture
def deaf() -> Iterator[str]:
    """Takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_nobody_who_presses_tab_waits_long_or_hears_of_it(deaf: str) -> None:
    words = command("complete-line", "bash", BREAKS, f"moldau topics describe -b {deaf} ")
    begun_s = time.monotonic()
    first = subprocess.run(words, env=environment(""), capture_output=True, text=True, check=False)
    assert time.monotonic() - begun_s >= ANSWER_S
    assert (first.returncode, first.stdout, first.stderr) == (0, "\n", "")


@pytest.mark.parametrize("arguments", [[], ["bash"], ["bash", BREAKS], ["zsh"], ["nosuch", "moldau"]], ids=str)
def test_a_question_that_is_none_is_no_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from moldau.cli.completion.answering import main

    assert main(arguments, moldau.__main__.parser_of) == 0
    assert capsys.readouterr().err == ""


def test_names_are_kept_for_the_next_tab(tool: Callable[..., object], bootstrap: str, moldau_topic: str) -> None:
    tool("topics", "create", moldau_topic)
    assert offered("topics", "describe", "-b", bootstrap, moldau_topic) == [moldau_topic]
    tool("topics", "delete", moldau_topic, "--yes")
    assert offered("topics", "describe", "-b", bootstrap, moldau_topic) == [moldau_topic]
    deadline_s = time.monotonic() + STALE_S_MAX
    while offered("topics", "describe", "-b", bootstrap, moldau_topic):
        assert time.monotonic() < deadline_s
        time.sleep(0.2)


def test_scripts_name_every_script_of_apache_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    from moldau.cli.completion.command import SHELLS, main

    for shell in SHELLS:
        assert main([shell]) == 0
        text = capsys.readouterr().out
        assert "kafka-topics.sh" in text
        assert "@ASK@" not in text
        assert "@NAMES@" not in text


def test_a_parser_of_argparse_alone_is_understood() -> None:
    parser = Parser()
    parser.add_argument("--many", nargs="+", choices=["a", "b"])
    parser.add_argument("--flag", action="store_true")
    parser.add_argument("word", choices=["c", "d"])
    shape = shape_of(parser)
    walk = Walk(shape)
    for word in ("--many", "a"):
        walk.take(word)
    place = walk.place("")
    assert place.value is not None
    assert place.value.words == ["a", "b"]
    walk.take("--flag")
    place = walk.place("")
    assert place.value is not None
    assert place.value.words == ["c", "d"]
