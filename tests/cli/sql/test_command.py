"""`moldau sql` as a user runs it: a shell on a terminal, statements from a pipe, queries that stay."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, command, environment

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

ANSWER_S_MAX = 60.0
WAIT_S_MAX = 240.0


class Shell:
    """`moldau sql` on a terminal of its own."""

    def __init__(self, bootstrap: str, home: Path) -> None:
        self._terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command("sql"),
            env={**environment(bootstrap), "MOLDAU_HOME": str(home), "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = ""

    def types(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def shows(self, pattern: str) -> str:
        """Wait until it is on the screen; what was shown before counts only once."""
        deadline = time.monotonic() + ANSWER_S_MAX
        while not (found := re.search(pattern, self._shown)):
            assert time.monotonic() < deadline, self._shown
            if select.select([self._terminal], [], [], 0.5)[0]:
                shown = os.read(self._terminal, 65536).decode(errors="replace")
                self._shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
        self._shown = self._shown[found.end() :]
        return found[0]

    def ended(self) -> int:
        return self.process.wait(ANSWER_S_MAX)

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.mark.long
def test_the_shell_completes_names_and_remembers(bootstrap: str, topic: str, tmp_path: Path) -> None:
    with Shell(bootstrap, tmp_path) as shell:
        shell.shows("Statements end with ';'")
        shell.types("show topics;\r")
        shell.shows(re.escape(topic))
        shell.types(f"drop stream {topic[:-4]}")
        shell.shows(re.escape(topic))  # in the menu that comes by itself
        shell.types("\t;\r")
        shell.shows(f"there is no stream {re.escape(topic)}")
        shell.types("\\h\r")
        shell.shows("ends, .* helps")
        shell.types("\\q\r")
        assert shell.ended() == 0
    with Shell(bootstrap, tmp_path) as again:
        again.shows("Statements end with ';'")
        again.shows("moldau>")
        again.types("\x1b[A" * 3 + "\r")
        again.shows(f"there is no stream {re.escape(topic)}")
        again.shows("moldau>")  # before it the terminal itself would take the key for an end, of nothing
        again.types("\x04")
        assert again.ended() == 0


@pytest.mark.long
def test_a_pipe_is_answered_statement_by_statement(tool: Tool, topic: str) -> None:
    said = tool("sql", "-o", "csv", stdin="show streams\n;\nselct 1;\ndrop stream none;\nshow topics;")
    assert said.returncode == 0
    assert said.stdout.splitlines()[:2] == ["stream,state,rows,query", "topic"]
    assert topic in said.stdout
    assert [line.partition(":")[0] for line in said.stderr.splitlines()] == ["sql", "there is no stream none"]


def test_what_ksqldb_users_set_is_so_already(done: Callable[..., str]) -> None:
    said = done("sql", "SET 'auto.offset.reset'='earliest'; show topics")
    assert said.startswith("a question reads from the oldest record on, and so does --follow: nothing to set\n")


def test_a_session_knows_a_registry(done: Callable[..., str]) -> None:
    said = done("sql", "set schema.registry.url = 'http://localhost:1'; show streams")
    assert said.startswith("schema.registry.url is set: topics are read by their schemas in the registry\n")


def test_mistakes_that_need_no_spark(tool: Tool, topic: str) -> None:
    for statement, exit_code, reason in (
        ("selct 1", 2, "sql:1: "),
        (f"insert into `{topic}` values (1)", 2, "sql:1: a query was expected here, found INSERT"),
        ("select 'a", 2, "sql:1: this quote is not closed"),
        (
            "create stream s as select * from nowhere_at_all",
            1,
            "there is no topic, stream, table or view nowhere_at_all",
        ),
        ("drop stream none", 1, "there is no stream none"),
        ("set 'auto.offset.reset' = 'latest'", 2, "sql:1: auto.offset.reset is not set here: say where to begin by a"),
        ("set a = 1", 2, "sql:1: a is not set here: allowed are the settings of Spark, spark.*"),
    ):
        ended = tool("sql", statement)
        assert (ended.returncode, ended.stdout) == (exit_code, "")
        assert ended.stderr.startswith(f"moldau sql: {reason}")
        assert len(ended.stderr.splitlines()) == 1


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_a_stream_stays_until_it_is_dropped(
    tool: Tool, done: Callable[..., str], topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOLDAU_HOME", str(tmp_path))
    done("produce", topic, stdin='{"n": 1}\n{"n": 5}\n')
    stream = f"{topic}-large"
    statement = f"create stream `{stream}` as\n select n from `{topic}`\n where n > 3"
    # A password that a plain listener does not ask for goes the same way as one that is needed.
    made = tool("sql", "--master", "local[2]", "-X", "sasl.password=hunter2", statement)
    assert made.stdout == f"stream {stream} runs and stays; see it with: show streams\n", made.stderr
    file = tmp_path / "streams" / f"{stream}.sql"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert kept == []
    deadline = time.monotonic() + WAIT_S_MAX
    while done("consume", stream, "--from-beginning", "-e") != '{"n":5}\n':
        assert time.monotonic() < deadline
        time.sleep(0.5)
    twice = tool("sql", statement)
    assert "there is a stream" in twice.stderr
    listed = done("sql", "-o", "csv", "show streams").splitlines()[1].split(",")
    assert (listed[0], listed[1]) == (stream, "running")
    assert listed[3] == f"create stream `{stream}` as select n from `{topic}` where n > 3"
    assert done("sql", f"drop stream `{stream}`") == f"dropped {stream}; its topic stays\n"
    assert done("sql", "-o", "csv", "show streams").splitlines() == ["stream,state,rows,query"]


def test_classes_that_were_to_be_kept_and_can_not_be_are_a_failure(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image would be without them, whatever was asked."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ended = subprocess.run(
        command("sql", "--keep-classes", "show streams"),
        env={**environment(bootstrap), "MOLDAU_HOME": str(tmp_path)},
        capture_output=True,
        timeout=WAIT_S_MAX,
        check=False,
    )
    assert b"no archive of Spark's classes could be made" in ended.stderr
    assert ended.returncode != 0


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_classes_are_kept_for_the_next_start(
    bootstrap: str, done: Callable[..., str], topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.spark.pipelines.running.sessions.quick_start import archive

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MOLDAU_HOME", str(tmp_path / "home"))
    done("produce", topic, stdin='{"n": 1}\n{"n": 5}\n')
    question = ("sql", "--master", "local[2]", "-o", "csv", f"select sum(n) from `{topic}`")

    def answer(*options: str) -> str:
        ended = subprocess.run(
            command(*question, *options),
            env=environment(bootstrap),
            capture_output=True,
            timeout=WAIT_S_MAX,
            check=False,
        )
        assert ended.stderr == b""
        return ended.stdout.decode()

    kept = archive()
    assert kept is not None
    assert answer() == "sum(n)\n6\n"
    assert not kept.exists()  # a script leaves nothing behind
    answer("--keep-classes")
    assert kept.stat().st_size > 50 << 20
    assert answer() == "sum(n)\n6\n"
