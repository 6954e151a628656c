"""`moldau produce`, `consume` and the console tools in a real terminal, which tmux gives."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator

import pytest

from moldau.cli.progress import PATIENCE_S
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

Done = Callable[..., str]


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


def test_who_types_slowly_is_shown_nothing_but_what_was_typed(terminal: Terminal, done: Done, topic: str) -> None:
    terminal.run("produce", topic, "-p", "0")
    terminal.type("first")
    while done("consume", topic, "--from-beginning", "-e") != "first\n":
        pass
    time.sleep(PATIENCE_S)  # after which long work shows how far it is
    terminal.type("second")
    while done("consume", topic, "--from-beginning", "-e") != "first\nsecond\n":
        pass
    terminal.type("third")
    terminal.press("C-d")
    terminal.wait_for("first", "second", "third", "ended with 0")
    assert "bytes" not in terminal.screen


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
