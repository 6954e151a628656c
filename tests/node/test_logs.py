"""The broker's log as its users read it: one form for every line, in a file or on standard error."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from moldau.core.log_file import LogFile
from moldau.core.logs import JsonLines, TextLines, configure_logging

WAIT_S_MAX = 30.0
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def record(message: str, *arguments: object, **fields: object) -> logging.LogRecord:
    return logging.getLogger("moldau.test").makeRecord(
        "moldau.test", logging.WARNING, __file__, 1, message, arguments, None, extra=fields
    )


@pytest.fixture
def restored_logging() -> Iterator[None]:
    handlers, level, hook = logging.root.handlers[:], logging.root.level, threading.excepthook
    yield
    for handler in logging.root.handlers:
        if handler not in handlers:
            handler.close()
    logging.root.handlers[:], threading.excepthook = handlers, hook
    logging.root.setLevel(level)


def test_text_is_time_level_logger_and_message() -> None:
    line = TextLines().format(record("topic %s", "orders", topic="orders"))
    time_, rest = line.split(" ", 1)
    assert RFC_3339.fullmatch(time_)
    assert rest == "WARNING moldau.test topic orders"


def test_a_line_break_in_what_a_client_sent_makes_no_second_line() -> None:
    line = TextLines().format(record("client %s", "me\n2026-01-01T00:00:00.000Z INFO moldau all is well\x1b[2J\u2028"))
    assert line.splitlines() == [line]
    assert "\x1b" not in line
    assert r"me\n2026" in line


def test_json_has_the_fields_of_a_record() -> None:
    line = json.loads(JsonLines().format(record("topic %s\n", "orders", topic="orders", path=Path("a"))))
    assert RFC_3339.fullmatch(line.pop("time"))
    assert line == {
        "level": "WARNING",
        "logger": "moldau.test",
        "message": "topic orders\n",
        "topic": "orders",
        "path": "a",
    }


def test_json_with_an_exception_is_one_line(restored_logging: None, tmp_path: Path) -> None:
    configure_logging(level="INFO", form="json", path=tmp_path / "log")
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("moldau.test").exception("failed")
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert json.loads(line)["exception"].endswith("ValueError: no")


def test_a_thread_that_fails_is_a_line_of_the_log(restored_logging: None, tmp_path: Path) -> None:
    configure_logging(level="INFO", form="json", path=tmp_path / "log")
    thread = threading.Thread(target=lambda: 1 // 0, name="flusher")
    thread.start()
    thread.join()
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert json.loads(line)["message"] == "thread flusher failed"


def test_a_file_that_was_rotated_is_opened_again(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "log")
    file.emit(record("before"))
    (tmp_path / "log").rename(tmp_path / "log.1")
    file.emit(record("after"))
    file.close()
    assert (tmp_path / "log.1").read_text() == "before\n"
    assert (tmp_path / "log").read_text() == "after\n"


def test_a_full_disk_costs_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    file = LogFile(Path("/dev/full"))
    file.emit(record("lost"))
    file.emit(record("lost too"))
    with pytest.raises(OSError, match="No space left"):
        file.close()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "moldau: log file /dev/full: No space left on device; lines are lost until it can be written"


def test_a_file_that_cant_be_opened_again_costs_lines_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever logged was ended by it: after that, no request that changes the cluster was answered."""
    directory = tmp_path / "logs"
    directory.mkdir()
    file = LogFile(directory / "log")
    for _ in range(2):
        shutil.rmtree(directory)
        file.emit(record("lost"))
        file.emit(record("lost too"))
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"moldau: log file {directory}/log: No such file or directory; lines are lost")
        directory.mkdir()
        file.emit(record("kept"))
        assert (directory / "log").read_text() == "kept\n"
    file.close()


class LoggedBroker:
    """`moldau start --log-file ...`, whose log is what is known of it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "broker.log"
        self._printed = (folder / "printed").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moldau", "start", "--port", "0", "--log-file", str(self.log), *arguments],
            cwd=folder,
            stdout=self._printed,
            stderr=subprocess.STDOUT,
        )

    def wait_for(self, message: str) -> dict[str, Any]:
        """The first line of the log whose message has this in it."""
        deadline_s = time.monotonic() + WAIT_S_MAX
        while True:
            lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
            for line in lines:
                if message in line["message"]:
                    return dict(line)
            assert self._process.poll() is None, lines
            assert time.monotonic() < deadline_s, lines
            time.sleep(0.02)

    def stop(self) -> str:
        """Its end, and what it printed."""
        self._process.terminate()
        assert self._process.wait(WAIT_S_MAX) == 0
        self._printed.seek(0)
        return self._printed.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._printed.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LoggedBroker]:
    started = LoggedBroker(tmp_path, "--log-format", "json")
    yield started
    started.close()


def test_a_life_in_lines(broker: LoggedBroker) -> None:
    start = broker.wait_for("broker 0 started in ")
    assert (start["topics"], start["partitions"], start["broker_id"]) == (0, 0, 0)
    admin = AdminClient({"bootstrap.servers": start["listeners"][0].removeprefix("PLAINTEXT://")})
    config = {"cleanup.policy": "compact"}
    admin.create_topics([NewTopic("orders", 2, config=config)])["orders"].result(WAIT_S_MAX)
    created = broker.wait_for("created topic orders: partitions=2 cleanup.policy=compact")
    assert (created["topic"], created["partitions"], created["config"]) == ("orders", 2, config)
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(WAIT_S_MAX)
    assert broker.wait_for("topic orders grew from 2 to 3 partitions")["partitions"] == 3
    admin.delete_topics(["orders"])["orders"].result(WAIT_S_MAX)
    assert broker.wait_for("deleted topic orders")["partitions"] == 3
    many = [NewTopic(f"many-{each}", 2) for each in range(100)]
    for created_topic in admin.create_topics(many).values():
        created_topic.result(WAIT_S_MAX)
    assert broker.wait_for("created 100 topics with 200 partitions: many-0, many-1, ")["topics"] == 100
    printed = broker.stop()
    lines = [json.loads(line) for line in broker.log.read_text().splitlines()]
    assert [line["message"].partition(" in ")[0] for line in lines][-2:] == ["stopping: SIGTERM", "broker stopped"]
    assert lines[-1]["reason"] == "SIGTERM"
    assert {line["logger"].partition(".")[0] for line in lines} == {"moldau"}
    assert printed == "", "with JSON there is no banner"


def test_a_start_that_fails_is_told_in_the_log_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau", "start", "--log-file", "log", "--override", "num.partitions=many"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S_MAX, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("moldau start: Invalid value many for configuration num.partitions")
    assert "ERROR moldau.node.command Invalid value many" in (tmp_path / "log").read_text()


def test_a_log_file_that_cant_be_opened_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau", "start", "--log-file", "missing/log"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S_MAX, check=False)
    assert refused.returncode == 2
    assert refused.stderr == f"moldau start: --log-file: No such file or directory: {tmp_path / 'missing/log'}\n"
