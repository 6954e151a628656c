"""`moldau up`: all of it answers, and all of it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.apache_kafka import free_ports
from tests.cli.conftest import RUN_S_MAX, command
from tests.cluster.asking import until

WHERE = re.compile(r"  (broker|registry|REST proxy) +(\S+)")


@contextmanager
def up(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    words = ("--port", "0", "--registry-port", "0", "--rest-port", "0", "--data-dir", str(folder / "data"), *arguments)
    with subprocess.Popen(
        command("up", *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            found: dict[str, str] = {}
            assert process.stdout.readline() == "all of it answers; Ctrl-C stops it\n", process.communicate()[1]
            while len(found) < 3 - arguments.count("--without"):
                line = WHERE.fullmatch(process.stdout.readline().rstrip("\n"))
                assert line is not None
                found[line[1]] = line[2]
            yield process, found
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(each) for each in found.stdout.split() if Path(f"/proc/{each}").exists() and is_ours(int(each))]


def is_ours(pid: int) -> bool:
    return b"moldau" in Path(f"/proc/{pid}/cmdline").read_bytes()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_says_where_all_answer_and_ctrl_c_ends_them(tmp_path: Path) -> None:
    with up(tmp_path) as (process, found):
        started = children(process.pid)
        assert len(started) == 3
        with urllib.request.urlopen(f"{found['registry']}/subjects", timeout=20) as answer:
            assert answer.read() == b"[]"
        with urllib.request.urlopen(f"{found['REST proxy']}/topics", timeout=20) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(RUN_S_MAX) == 0
        assert [each for each in started if is_alive(each)] == []


def test_one_that_falls_takes_the_others_with_it(tmp_path: Path) -> None:
    with up(tmp_path, "--without", "rest") as (process, _):
        broker, registry = sorted(children(process.pid))
        os.kill(registry, signal.SIGKILL)
        assert process.wait(RUN_S_MAX) == 1
        assert process.stderr is not None
        assert "moldau up: the registry (exit code -9) ended; the others are stopped\n" in process.stderr.read()
        assert not is_alive(broker)


def test_all_end_when_it_is_killed(tmp_path: Path) -> None:
    with up(tmp_path, "--without", "rest") as (process, _):
        started = children(process.pid)
        process.kill()
        for each in started:
            until(lambda each=each: not is_alive(each), f"process {each} lives on")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "told", "exit_code"),
    [
        (("--registry-port", "x"), "moldau up: argument --registry-port: 'x' is no port", 2),
        (("--override", "nonsense"), "moldau start: Invalid value 'nonsense' for --override", 2),
        (("--nonsense",), "moldau up: unknown option --nonsense", 2),
        (("--brokers", "x"), "moldau start: argument --brokers: ", 2),
        (("missing.properties",), "moldau start: missing.properties can't be read", 2),
    ],
)
def test_bad_use_is_one_line_of_whoever_understands_it(
    tmp_path: Path, arguments: tuple[str, ...], told: str, exit_code: int
) -> None:
    words = ("--port", str(free_ports(1)[0]), "--data-dir", str(tmp_path / "data"), *arguments)
    ended = subprocess.run(command("up", *words), capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    assert ended.returncode == exit_code
    assert ended.stderr.startswith(told)
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
