"""The command itself: help, version, exit codes, and what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Tool, command, run_tool


@pytest.mark.parametrize(
    "arguments",
    [(), ("start",), ("topics",), ("topics", "list"), ("topics", "create"), ("produce",), ("consume",)],
    ids=" ".join,
)
def test_help_is_there_for_everything(arguments: tuple[str, ...]) -> None:
    finished = run_tool("", *arguments, "--help")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith("usage: moldau")


@pytest.mark.parametrize("arguments", [("start",), ("produce",), ("consume",), ("topics",)], ids=" ".join)
def test_help_has_examples(arguments: tuple[str, ...]) -> None:
    assert "examples:" in run_tool("", *arguments, "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("frobnicate",),
        ("topics",),
        ("topics", "paint"),
        ("topics", "list", "--timeout", "inf"),
        ("consume",),
        ("consume", "orders", "-n", "-1"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    finished = run_tool("", *arguments)
    assert finished.returncode == 2
    assert finished.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "closed", "stream"),
    [("consume orders", ">&-", "output"), ("produce orders", "<&-", "input"), ("topics list", ">&-", "output")],
)
def test_a_closed_stream_is_one_line(arguments: str, closed: str, stream: str) -> None:
    tool = " ".join(command(*arguments.split()))
    finished = subprocess.run(["sh", "-c", f"exec {tool} {closed}"], stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 1
    assert finished.stderr == f"moldau {arguments.split(maxsplit=1)[0]}: standard {stream} is closed\n"


def test_an_option_before_any_tool_is_suggested() -> None:
    finished = run_tool("", "--verison")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == "moldau: unknown option --verison; did you mean --version?; see: moldau help\n"


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert run_tool("", "--version").stdout == f"moldau {version('moldau')}\n"


def test_a_broker_starts_without_the_client_library_and_the_tools() -> None:
    listing = "import sys; import moldau.node.server, moldau.node.command; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    unwanted = ("confluent_kafka", "moldau.cli", "moldau.embedded", "subprocess32", "pytest", "hypothesis", "kazoo")
    assert not [name for name in loaded if name.startswith((*unwanted, "cryptography", "moldau.security.tls"))]


def test_importing_the_package_costs_next_to_nothing() -> None:
    listing = "import sys; before = set(sys.modules); import moldau; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("moldau")] == ["moldau"]


@pytest.mark.parametrize(
    "words", ["topics describe", "groups describe", "consume -e", "produce", "acls list --principal"]
)
def test_a_name_that_fits_into_no_request_is_one_line(words: str, tool: Tool) -> None:
    ended = tool(*words.split(), "a" * 40_000)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr) < 200
    assert ended.stderr.count("\n") == 1
