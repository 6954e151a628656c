"""Control characters in what strangers wrote: nothing of it reaches a terminal, or another line of a table."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator

import pytest

from moldau.cli.doctor.findings import Finding, Severity
from moldau.cli.doctor.report import print_report
from moldau.cli.output import cell, print_rows
from moldau.cli.terminal import VisibleText
from moldau.core.visible import visible_bytes
from tests.cli.conftest import Tool
from tests.cli.terminal import Terminal

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

EVIL = "a\x1b[2J\x1b]0;title\x07b\x9b31m\u202ec"
SHOWN = r"a\x1b[2J\x1b]0;title\x07b\x9b31m\u202ec"


def test_a_cell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"group": f"{EVIL}\nbilling\tx", "members": [EVIL], "configs": {"k": EVIL}, "lag": "", "host": []}]
    print_rows(rows, columns=("group", "members", "configs", "lag", "host"), output="table")
    _, line = capsys.readouterr().out.splitlines()
    assert line.split() == [rf"{SHOWN}\nbilling\tx", SHOWN, f"k={SHOWN}", "-", "-"]


def test_text_that_is_harmless_stays() -> None:
    assert cell("two\r\n") == r"two\r\n"
    assert cell("žluťoučký kůň 🐎 \\x1b") == "žluťoučký kůň 🐎 \\x1b"
    assert visible_bytes("ž\t🐎\n".encode() + b"\xff\x9b") == "ž\t🐎\n".encode() + b"\xff\x9b"


def test_a_terminal_is_shown_them_as_text_and_as_bytes() -> None:
    inner = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    stream = VisibleText(inner)
    assert stream.write(f"{EVIL}\n\t") == len(EVIL) + 2
    stream.writelines([EVIL, "\n"])
    stream.buffer.write(f"{EVIL}\n".encode())
    stream.flush()
    assert inner.buffer.getvalue().decode() == f"{SHOWN}\n\t{SHOWN}\n{SHOWN}\n"
    assert stream.encoding == "utf-8"


def test_a_finding_of_doctor_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Finding(Severity.PROBLEM, "lag", EVIL, seen="3 behind", why=EVIL, do=(EVIL,))
    print_report([("cluster", [finding])], output="table", verbose=True)
    assert "\x1b" not in (told := capsys.readouterr().out)
    assert told.count(SHOWN) == 3


@pytest.fixture
def terminal(bootstrap: str) -> Iterator[Terminal]:
    opened = Terminal(bootstrap)
    yield opened
    opened.close()


@needs_tmux
def test_in_a_real_terminal(terminal: Terminal, tool: Tool, done: Callable[..., str], topic: str) -> None:
    assert done("produce", topic, stdin=f"{EVIL}\n") == ""
    for reader in (
        ("consume", topic, "--from-beginning", "-e"),
        ("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "1"),
    ):
        terminal.run(*reader)
        terminal.wait_for(SHOWN, "ended with 0")
        terminal.type("clear")
        terminal.wait(lambda: "ended with 0" not in terminal.screen)
    assert tool("consume", topic, "--from-beginning", "-e").stdout == f"{EVIL}\n"  # a pipe gets what was sent
    told = tool("topics", "describe", EVIL, "-o", "json")
    assert (told.returncode, "\x1b" in told.stderr) == (1, False)
    (wrong,) = json.loads(told.stdout)
    assert wrong["topic"] == EVIL


@needs_tmux
def test_a_group_of_a_stranger(terminal: Terminal, tool: Tool, done: Callable[..., str], topic: str) -> None:
    group = f"{topic}{EVIL}"
    done("groups", "reset", group, "--topic", topic, "--to", "earliest", "--yes")
    terminal.run("consumer-groups", "--list")
    terminal.wait_for(f"{topic}{SHOWN}", "ended with 0")
    assert group in done("consumer-groups", "--list").split("\n")
    assert f"{topic}{SHOWN}  " in done("groups", "list")
    assert done("groups", "describe", group).splitlines()[0] == f"group        {topic}{SHOWN}"
    done("groups", "delete", group, "--yes")
