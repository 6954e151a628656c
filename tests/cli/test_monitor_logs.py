"""The monitor's log in JSON: whatever it says is one object a line, with fields for what a program asks."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.conftest import Tool, command, environment
from tests.monitor.worlds import commit, produce

WAIT_S_MAX = 60.0
SECOND_MS = 1_000


@contextmanager
def logging_monitor(bootstrap: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command("monitor", "--listen", "127.0.0.1:0", "--log-format", "json", *arguments),
        env=environment(bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: subprocess.Popen[str], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The next one like that; every line before it is an object, too."""
    assert process.stderr is not None
    deadline_s = time.monotonic() + WAIT_S_MAX
    for text in process.stderr:
        line: dict[str, Any] = json.loads(text)
        assert {"time", "level", "logger", "message"} <= line.keys()
        if wanted(line):
            return line
        assert time.monotonic() < deadline_s
    raise AssertionError("the log ended")


@pytest.fixture
def stopped_group(bootstrap: str) -> str:
    """Behind, and without a commit since the one that it has."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    produce(bootstrap, name, {0: [time.time_ns() // 1_000_000 - 100 * SECOND_MS] * 5})
    group = f"billing-{uuid.uuid4().hex[:8]}"
    commit(bootstrap, group, name, {0: 2})
    return group


def test_every_line_of_a_life_is_an_object(bootstrap: str, stopped_group: str, tmp_path: Path) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(
        f"interval = 0.3\n[clusters.main]\nbootstrap-server = '{bootstrap}'\ngroup-allowlist = '^{stopped_group}$'\n"
        "[notifiers.pager]\nurl-open = 'http://127.0.0.1:9/incidents'\n"
    )
    with logging_monitor(bootstrap, "--config", str(config)) as process:
        begun = line_with(process, lambda line: "url" in line)
        assert (begun["clusters"], begun["notifiers"], begun["level"]) == (["main"], ["pager"], "INFO")
        trouble = line_with(process, lambda line: "before" in line)
        assert (trouble["cluster"], trouble["group"], trouble["level"]) == ("main", stopped_group, "WARNING")
        assert (trouble["status"], trouble["before"], trouble["lag"]) == ("ERR", "NOTFOUND", 3)
        assert 100 <= trouble["lag_seconds"] < 300
        assert re.fullmatch(r"orders-.*-0 (STOP|STALL)", trouble["trouble"][0])
        refused = line_with(process, lambda line: line.get("notifier") == "pager")
        assert (refused["cluster"], refused["group"], refused["status"]) == ("main", stopped_group, "ERR")
        assert (refused["event"], refused["attempt"]) == ("open", 1)
        assert "refused" in refused["failure"]
        host, port = begun["url"].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"no HTTP at all\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400")  # of which the log says nothing
        process.send_signal(signal.SIGTERM)
        line_with(process, lambda line: line["message"] == "monitor stopped")
        out, rest = process.communicate(timeout=WAIT_S_MAX)
    assert (process.returncode, out) == (0, "")
    assert [json.loads(line) for line in rest.splitlines()] == []


def test_a_cluster_that_is_gone_and_back_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    config = tmp_path / "monitor.toml"
    config.write_text(f"[clusters.main]\nbootstrap-server = '{nobody}'\ntimeout = 2\n")
    log = tmp_path / "log"
    with logging_monitor("", "--config", str(config), "--log-file", str(log)) as process:
        deadline_s = time.monotonic() + WAIT_S_MAX
        while not (found := [line for line in lines_of(log) if "failure" in line]):
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=WAIT_S_MAX)
    assert (found[0]["cluster"], found[0]["level"]) == ("main", "WARNING")
    assert nobody in found[0]["failure"]
    assert (process.returncode, out, errors) == (0, "", "")
    assert lines_of(log)[-1]["message"] == "monitor stopped"


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_start_that_is_refused_is_a_line_too(tool: Tool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = tool("monitor", "--log-format", "json", "--listen", address)
    (line,) = [json.loads(each) for each in refused.stderr.splitlines()]
    assert refused.returncode == 1
    assert (line["level"], line["message"]) == ("ERROR", f"cannot listen at {address}: Address already in use")


def test_what_is_no_place_for_a_log(tool: Tool, tmp_path: Path) -> None:
    refused = tool("monitor", "--log-file", str(tmp_path / "missing" / "log"))
    assert refused.returncode == 2
    assert refused.stderr == f"moldau monitor: cannot write {tmp_path}/missing/log: No such file or directory\n"
    refused = tool("monitor", "--log-format", "xml")
    assert refused.returncode == 2
    assert "'xml'" in refused.stderr
    assert "text, json" in refused.stderr
