"""`moldau produce`, `consume` and the console tools in a real terminal, which tmux gives."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import command, environment

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

Done = Callable[..., str]
WAIT_S_MAX = 30.0
PAUSE_S = 0.05


class Terminal:
    """A shell in a window of its own; `screen` is what a person sees."""

    def __init__(self, bootstrap: str) -> None:
        self.name = f"moldau-{uuid.uuid4().hex[:8]}"
        self.variables = environment(bootstrap)
        self.tmux("new-session", "-d", "-x", "200", "-y", "50", "sh")

    def tmux(self, *words: str) -> str:
        # A server of its own: nothing is shared with what whoever runs the tests has open.
        done = subprocess.run(
            ["tmux", "-L", self.name, *words], env=self.variables, capture_output=True, text=True, check=True
        )
        return done.stdout

    def run(self, *arguments: str) -> None:
        self.type(shlex.join(command(*arguments)) + "; echo ended with $?")

    def type(self, line: str) -> None:
        self.tmux("send-keys", "-l", line)
        self.press("Enter")

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J")

    def wait_for(self, *lines: str) -> None:
        """Until each of them stands in a line of its own."""
        deadline_s = time.monotonic() + WAIT_S_MAX
        while not set(lines) <= {line.rstrip() for line in self.screen.splitlines()}:
            assert time.monotonic() < deadline_s, self.screen
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self.tmux("kill-server")


@pytest.fixture
def terminal(bootstrap: str) -> Iterator[Terminal]:
    opened = Terminal(bootstrap)
    yield opened
    opened.close()


def test_what_is_typed_is_sent_at_once(terminal: Terminal, done: Done, topic: str) -> None:
    terminal.run("produce", topic, "-p", "0", "-o", "json")
    terminal.type("first")
    terminal.wait_for(f'{{"topic": "{topic}", "partition": 0, "offset": 0}}')
    assert done("consume", topic, "--from-beginning", "-e") == "first\n"
    terminal.press("C-c")
    terminal.wait_for("^Cended with 130")
    assert "Traceback" not in terminal.screen


def test_consume_ends_by_ctrl_c_without_a_word(terminal: Terminal, done: Done, topic: str) -> None:
    done("produce", topic, stdin="first\n")
    terminal.run("consume", topic, "--from-beginning")
    terminal.wait_for("first")
    done("produce", topic, stdin="second\n")
    terminal.wait_for("second")
    terminal.press("C-c")
    terminal.wait_for("^Cended with 0")
    assert "Traceback" not in terminal.screen


def test_console_producer_prompts_and_end_of_input_ends_it(terminal: Terminal, done: Done, topic: str) -> None:
    terminal.run("console-producer", "--topic", topic)
    terminal.wait_for(">")
    terminal.type("first")
    terminal.wait_for(">first", ">")
    terminal.press("C-d")
    terminal.wait_for(">ended with 0")
    assert done("consume", topic, "--from-beginning", "-e") == "first\n"


def test_console_consumer_counts_when_ctrl_c_ends_it(terminal: Terminal, done: Done, topic: str) -> None:
    done("produce", topic, stdin="first\n")
    terminal.run("console-consumer", "--topic", topic, "--from-beginning")
    terminal.wait_for("first")
    terminal.press("C-c")
    terminal.wait_for("^CProcessed a total of 1 messages", "ended with 0")
