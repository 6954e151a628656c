"""Tools in a real terminal: questions, progress that leaves the screen clean, and Ctrl-C."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest

from moldau.cli.progress import Progress, ProgressLine
from tests.cli.conftest import command, environment
from tests.cli.terminal import Terminal
from tests.log.samples import batch

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

Done = Callable[..., str]


@pytest.fixture
def terminal(bootstrap: str) -> Iterator[Terminal]:
    opened = Terminal(bootstrap)
    yield opened
    opened.close()


def is_there(done: Done, topic: str) -> bool:
    return topic in done("topics", "--list").splitlines()


@needs_tmux
def test_a_loss_is_asked_about(terminal: Terminal, done: Done, topic: str) -> None:
    for answer in ("n", ""):
        terminal.run("topics", "delete", topic)
        terminal.wait(lambda: any(each.endswith("[y/N]") for each in terminal.lines))
        terminal.type(answer)
        terminal.wait_for("moldau topics: nothing was done", "ended with 1")
        assert is_there(done, topic)
        terminal.type("clear")
        terminal.wait(lambda: "nothing was done" not in terminal.screen)
    terminal.run("topics", "delete", topic)
    terminal.wait(lambda: any(each.endswith("[y/N]") for each in terminal.lines))
    terminal.type("y")
    terminal.wait_for(f"deleted {topic}", "ended with 0")
    assert not is_there(done, topic)


@needs_tmux
def test_ctrl_c_at_a_question_changes_nothing(terminal: Terminal, done: Done, topic: str) -> None:
    terminal.run("topics", "delete", topic)
    terminal.wait(lambda: any(each.endswith("[y/N]") for each in terminal.lines))
    terminal.press("C-c")
    terminal.wait(lambda: any(each.endswith("ended with 130") for each in terminal.lines))
    assert is_there(done, topic)
    assert "Traceback" not in terminal.screen


@needs_tmux
def test_yes_asks_nothing(terminal: Terminal, done: Done, topic: str) -> None:
    terminal.run("topics", "delete", topic, "--yes")
    terminal.wait_for(f"deleted {topic}", "ended with 0")
    assert "[y/N]" not in terminal.screen
    assert not is_there(done, topic)


@needs_tmux
def test_produce_shows_how_far_it_is(terminal: Terminal, done: Done, topic: str, tmp_path: Path) -> None:
    pipe = tmp_path / "records"
    os.mkfifo(pipe)
    terminal.run("produce", topic, "-F", str(pipe))
    with open(pipe, "wb", buffering=0) as file:

        def is_shown() -> bool:
            file.write(b"a record of some length\n" * 100)
            return any(each.startswith("produce: ") and each.endswith("/s") for each in terminal.lines)

        terminal.wait(is_shown)
    terminal.wait_for("ended with 0")
    assert "produce: " not in terminal.screen


@needs_tmux
def test_consume_into_a_file_shows_how_far_it_is(terminal: Terminal, done: Done, topic: str, tmp_path: Path) -> None:
    line = shlex.join(command("consume", topic, "--from-beginning"))
    terminal.type(f"{line} > {tmp_path / 'records'}; echo ended with $?")

    def is_shown() -> bool:
        done("produce", topic, stdin="a\nb\n")
        return any(each.startswith("consume: ") and " records, " in each for each in terminal.lines)

    terminal.wait(is_shown)
    terminal.press("C-c")
    terminal.wait(lambda: any(each.endswith("ended with 0") for each in terminal.lines))
    assert "consume: " not in terminal.screen
    assert (tmp_path / "records").read_text().startswith("a\nb\n")


@needs_tmux
def test_dump_log_into_a_file_shows_how_far_it_is(terminal: Terminal, tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(bytes(batch([b"a"])) * 400_000)
    line = shlex.join(command("dump-log", "--files", str(log)))
    terminal.type(f"{line} > {os.devnull}; echo ended with $?")
    terminal.wait(lambda: any(each.startswith("dump-log: [") and each.endswith(" left") for each in terminal.lines))
    terminal.press("C-c")
    terminal.wait(lambda: any(each.endswith("ended with 130") for each in terminal.lines))
    assert "dump-log: [" not in terminal.screen
    assert "Traceback" not in terminal.screen


@needs_tmux
@pytest.mark.parametrize(
    ("line", "begun"),
    [
        ("producer-perf --topic {} --num-records 1000000 --record-size 10 --throughput 100 --reporting-interval 200",
         "records sent"),
        ("consumer-perf --topic {} --num-records 1000000 --timeout 60000", "start.time"),
        ("verifiable-producer --topic {} --throughput 5", "producer_send_success"),
        ("verifiable-consumer --topic {} --group-id {}", "startup_complete"),
        ("replica-verification --topics-include {}", "process is started"),
        ("console-consumer --topic {} --from-beginning", "a record"),
        ("monitor --listen 127.0.0.1:0", "http://"),
    ],
    ids=lambda text: text.split(maxsplit=1)[0] if text else "",
)  # fmt: skip
def test_ctrl_c_ends_what_goes_on(terminal: Terminal, done: Done, topic: str, line: str, begun: str) -> None:
    done("produce", topic, stdin="a record\n")
    terminal.run(*line.replace("{}", topic).split())
    terminal.wait(lambda: any(begun in each for each in terminal.lines if "-m moldau" not in each))
    terminal.press("C-c")
    terminal.wait(lambda: "ended with " in terminal.screen.rpartition("^C")[2])
    assert "Traceback" not in terminal.screen


def test_a_script_sees_no_progress(bootstrap: str, topic: str, tmp_path: Path) -> None:
    pipe = tmp_path / "records"
    os.mkfifo(pipe)
    with subprocess.Popen(
        command("produce", topic, "-F", str(pipe)), env=environment(bootstrap), stderr=subprocess.PIPE, text=True
    ) as running:
        pipe.write_bytes(b"a\n")
        assert running.communicate()[1] == ""
    assert running.returncode == 0


class Screen(StringIO):
    @property
    def drawn(self) -> list[str]:
        """Line by line, as it was drawn."""
        return self.getvalue().split("\r\x1b[K")[1:]


def test_progress_waits_a_second_and_is_drawn_five_times_in_one() -> None:
    screen, now_s = Screen(), [0.0]
    shown = Progress(ProgressLine(screen), "copy", total=200, show="{} B".format, elapsed_s=lambda: now_s[0])
    with shown:
        for done in range(200):
            now_s[0] = done / 100
            shown.at(done)
    assert screen.drawn == [
        "copy: [##########..........]  50% of 200 B, 100 B/s, 0:01 left",
        "copy: [############........]  60% of 200 B, 100 B/s, 0:01 left",
        "copy: [##############......]  70% of 200 B, 100 B/s, 0:01 left",
        "copy: [################....]  80% of 200 B, 100 B/s, 0:00 left",
        "copy: [##################..]  90% of 200 B, 100 B/s, 0:00 left",
        "",
    ]


def test_progress_of_short_work_is_none() -> None:
    screen, now_s = Screen(), [0.0]
    with Progress(ProgressLine(screen), "copy", elapsed_s=lambda: now_s[0]) as shown:
        now_s[0] = 0.9
        shown.add(5)
    assert screen.drawn == []
