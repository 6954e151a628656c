"""`moldau pipeline` as a user runs it. What needs no Spark is quick; one run has it all."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, command, environment

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

WAIT_S_MAX = 600.0
PIPELINE = """\
create stream numbers from topic '{topic}' watermark _timestamp delay '1 minute'
    with (valueFormat = json, valueSchema = 'n bigint', onError = skip);
expect positive on numbers check (n > 0) otherwise drop;
create sink copies into topic '{topic}-copies' every '200 milliseconds' as select n from numbers;
"""


@pytest.fixture
def file(topic: str, tmp_path: Path) -> Path:
    path = tmp_path / "numbers.sql"
    path.write_text(PIPELINE.format(topic=topic))
    return path


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@contextmanager
def running(bootstrap: str, *arguments: str, error: Path) -> Iterator[subprocess.Popen[bytes]]:
    with error.open("wb") as said:
        process = subprocess.Popen(
            command("pipeline", *arguments),
            env=environment(bootstrap),
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_the_life_of_a_pipeline(
    bootstrap: str, tool: Tool, done: Callable[..., str], file: Path, topic: str, tmp_path: Path
) -> None:
    done("produce", topic, stdin='{"n": 1}\n{"n": -1}\n{"n": "two"}\n{"n": 2}\n')
    error = tmp_path / "run.err"
    with running(bootstrap, "run", str(file), "--master", "local[2]", error=error) as process:

        def row() -> dict[str, object]:
            told = tool("pipeline", "status", str(file), "-o", "json")
            return dict(json.loads(told.stdout)[0]) if told.returncode == 0 else {}

        wait_for(lambda: row().get("rows") == 3, "three rows")
        told = row()
        assert (told["state"], told["lag"], told["restarts"]) == ("running", 0, 0)
        assert told["broken"] == {"numbers.positive": 1}
        second = tool("pipeline", "run", str(file))
        assert second.returncode == 1
        assert second.stderr == (
            f"moldau pipeline: process {process.pid} on {socket.gethostname()} runs this pipeline already; "
            f"stop it with: moldau pipeline stop {file}\n"
        )
        assert done("pipeline", "stop", str(file)) == "pipeline numbers stopped\n"
        assert process.wait(60) == 0
    said = error.read_text()
    assert "Traceback" not in said
    assert "\tat " not in said
    assert "numbers.copies: 1 rows of batch 0 break numbers.positive" in said
    assert "copies: stopped  3 rows" in said
    assert sorted(done("consume", f"{topic}-copies", "--from-beginning", "-e").splitlines()) == ['{"n":1}', '{"n":2}']
    told_at_last = done("pipeline", "status", str(file))
    assert "stopped" in told_at_last
    assert told_at_last.endswith(f"copies: 1 break numbers.positive\ncopies: 1 records of {topic} do not fit\n")
    assert done("pipeline", "reset", str(file)) == "would forget the progress of copies; add --yes to do it\n"
    assert done("pipeline", "reset", str(file), "--yes") == "forgot the progress of copies\n"


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_ctrl_c_ends_a_replay(bootstrap: str, done: Callable[..., str], file: Path, topic: str, tmp_path: Path) -> None:
    old = json.dumps({"value": '{"n": 1}', "timestamp": 1_700_000_000_000})
    new = json.dumps({"value": '{"n": 2}', "timestamp": int(time.time() * 1000) - 3_600_000})
    done("produce", topic, "-i", "json", stdin=f"{old}\n{new}\n")
    error = tmp_path / "run.err"
    arguments = ("replay", str(file), "--from", "-2h", "--yes", "--master", "local[2]")
    with running(bootstrap, *arguments, error=error) as process:
        copies = f"{topic}-copies"
        wait_for(
            lambda: copies in done("topics", "list") and bool(done("consume", copies, "--from-beginning", "-e")),
            "a copy",
        )
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everybody
        assert process.wait(60) == 0
    assert "Traceback" not in error.read_text()
    assert "copies: stopped" in error.read_text()
    assert done("consume", f"{topic}-copies", "--from-beginning", "-e") == '{"n":2}\n'


def test_a_replay_asks_and_leaves_everything_as_it_is(
    tool: Tool, done: Callable[..., str], file: Path, topic: str
) -> None:
    done("produce", topic, stdin='{"n": 1}\n{"n": 2}\n')
    progress = file.parent / ".moldau" / "pipelines" / "numbers" / "checkpoints" / "copies"
    progress.mkdir(parents=True)
    refused = tool("pipeline", "replay", str(file), "--from", "earliest")
    assert refused.returncode == 2
    assert refused.stderr == (
        "pipeline numbers would run anew:\n"
        f"  numbers reads 2 records of topic {topic} again\n"
        f"  copies writes into topic {topic}-copies again, from its first finished batch on"
        " (its progress is kept until then)\n"
        "moldau pipeline: nothing was done; answer y, or add --yes, to replay it\n"
    )
    assert progress.is_dir()


def test_a_replay_that_cannot_begin_leaves_the_progress(
    bootstrap: str, done: Callable[..., str], file: Path, topic: str, tmp_path: Path
) -> None:
    done("produce", topic, stdin='{"n": 1}\n')
    progress = file.parent / ".moldau" / "pipelines" / "numbers" / "checkpoints" / "copies"
    progress.mkdir(parents=True)
    without_java = {**environment(bootstrap), "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    arguments = command("pipeline", "replay", str(file), "--from", "earliest", "--yes")
    ended = subprocess.run(arguments, env=without_java, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Spark needs Java" in ended.stderr
    assert progress.is_dir()


def test_what_is_wrong_is_said_with_its_line(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "bad.sql"
    path.write_text("create stream a from topic 'a';\ncreate sink b into console as select * from c;\n")
    found = tool("pipeline", "check", "--quick", str(path))
    assert found.returncode == 2
    assert "bad.sql:2: b reads c, which is no stream, table or view here" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_sound_file_is_drawn_and_has_no_status_yet(tool: Tool, done: Callable[..., str], file: Path) -> None:
    checked = done("pipeline", "check", "--quick", str(file))
    assert checked == "pipeline numbers: 1 sources, 0 views, 1 sinks; nothing is wrong\n"
    assert "stream numbers" in done("pipeline", "graph", str(file))
    assert done("pipeline", "graph", "--as", "mermaid", str(file)).startswith("flowchart LR")
    for action, reason in (
        ("status", f"pipeline numbers has not run yet; start it with: moldau pipeline run {file}"),
        ("stop", "pipeline numbers is not running"),
    ):
        refused = tool("pipeline", action, str(file))
        assert (refused.returncode, refused.stderr) == (1, f"moldau pipeline: {reason}\n")


def test_times_that_are_none_are_refused(tool: Tool, file: Path) -> None:
    refused = tool("pipeline", "replay", str(file), "--from", "yesterday")
    assert refused.returncode == 2
    assert refused.stderr == (
        "moldau pipeline: --from 'yesterday' is no time; allowed: "
        "-2h, -30m, earliest, or a moment such as 2026-01-31T12:00:00\n"
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--every", "10s"), "--every is for a spark-pipeline.yml; of numbers.sql a sink's own clause says it"),
        (
            ("--full-refresh", "all"),
            "--full-refresh is for a spark-pipeline.yml; of numbers.sql moldau pipeline",
        ),
    ],
)
def test_options_of_projects_are_refused(tool: Tool, file: Path, option: tuple[str, str], said: str) -> None:
    refused = tool("pipeline", "run", str(file), *option)
    assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_a_look_at_a_url_says_nothing_but_its_answer(tool: Tool, file: Path) -> None:
    found = tool("pipeline", "status", str(file), "--set", "checkpoint=nowhere://lake/numbers")
    assert found.returncode == 1
    assert len(found.stderr.splitlines()) == 1, found.stderr
    assert "Spark has no jar for such URLs" in found.stderr


@pytest.mark.parametrize("tool_name", ["pipeline", "sql"])
def test_without_java_or_spark_the_message_says_what_to_do(
    bootstrap: str, file: Path, topic: str, tmp_path: Path, tool_name: str
) -> None:
    arguments = ["pipeline", "run", str(file)] if tool_name == "pipeline" else ["sql", f"select * from `{topic}`"]
    (tmp_path / "none" / "pyspark").mkdir(parents=True)
    (tmp_path / "none" / "pyspark" / "__init__.py").write_text("raise ModuleNotFoundError(name='pyspark')\n")
    bare = {name: value for name, value in environment(bootstrap).items() if name != "JAVA_HOME"}
    for more, reason in (
        ({"PATH": str(tmp_path)}, "Spark needs Java 17 or newer, and none was found. Install one"),
        ({"PYTHONPATH": str(tmp_path / "none")}, "Spark is not installed: run pip install 'moldau[spark]'"),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "moldau", *arguments],
            env={**bare, **more, "MOLDAU_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert f"moldau {tool_name}: {reason}" in ended.stderr
        assert "Traceback" not in ended.stderr
