"""`moldau doctor` in a real terminal, which tmux gives."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator

import pytest

from tests.cli.terminal import PAUSE_S, WAIT_S_MAX, Terminal

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal("localhost:1")
    opened.tmux("resize-window", "-x", "200", "-y", "300")  # a report is longer than 50 lines
    yield opened
    opened.close()


ENDED = r"^ended with [01]$"


def wait_until_shown(terminal: Terminal, pattern: str) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not re.search(pattern, terminal.screen, re.MULTILINE):
        assert time.monotonic() < deadline_s, terminal.screen
        time.sleep(PAUSE_S)


def test_watching_is_shown_and_ctrl_c_ends_it_with_a_report(terminal: Terminal) -> None:
    terminal.run("doctor", "--machine", "--watch", "10m", "-v")
    wait_until_shown(terminal, "of 600 s")
    assert "watching unwritten pages:" in terminal.screen
    wait_until_shown(terminal, "pages: 2 of 600 s")
    terminal.press("C-c")
    wait_until_shown(terminal, ENDED)
    assert "unwritten pages:" in terminal.screen
    assert "samples)" in terminal.screen
    assert "of 600 s" not in terminal.screen, "the progress is gone from what is left on the screen"
    assert "Traceback" not in terminal.screen


def test_a_second_is_watched_to_its_end(terminal: Terminal) -> None:
    terminal.run("doctor", "--machine", "--watch", "1s")
    wait_until_shown(terminal, ENDED)
    assert "fine (-v shows them)" in terminal.screen
