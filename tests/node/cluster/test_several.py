"""`moldau start --brokers N`: one command, a process for each broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import moldau
from moldau.embedded.process import Address
from moldau.embedded.requests import create_topic, describe

START_S_MAX = 60.0
BROKER = re.compile(r"^  broker (\d+) +PLAINTEXT://127\.0\.0\.1:(\d+)  \(process (\d+)\)$", re.MULTILINE)


class Command:
    """A running `moldau start`, whose output is a file."""

    def __init__(self, process: subprocess.Popen[bytes], printed: Path) -> None:
        self.process = process
        self._printed = printed

    @property
    def output(self) -> str:
        return self._printed.read_text()

    def until(self, pattern: str) -> re.Match[str]:
        deadline_s = time.monotonic() + START_S_MAX
        while (found := re.search(pattern, self.output)) is None:
            assert time.monotonic() < deadline_s, self.output
            time.sleep(0.05)
        return found

    def brokers(self) -> dict[int, tuple[Address, int]]:
        """The address and the process of each, once all are ready."""
        self.until(r"brokers answer clients; Ctrl-C stops them\n(?:  broker .*\n)+  data .*\n")
        return {
            int(each[1]): (Address("127.0.0.1", int(each[2])), int(each[3])) for each in BROKER.finditer(self.output)
        }


@contextmanager
def started(tmp_path: Path, *arguments: str) -> Iterator[Command]:
    printed = tmp_path / "output.txt"
    command = [sys.executable, "-m", "moldau", "start", "--no-kafka-environment", "--data-dir", str(tmp_path / "data")]
    with printed.open("wb") as output:
        process = subprocess.Popen([*command, *arguments], stdout=output, stderr=subprocess.STDOUT)
    try:
        yield Command(process, printed)
    finally:
        process.kill()
        process.wait()


def is_gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def test_brokers_are_told_of_and_end_in_order(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "3", "--port", "0") as command:
        brokers = command.brokers()
        assert sorted(brokers) == [0, 1, 2]
        address = brokers[0][0]
        create_topic(address, "orders", partitions=3, replication_factor=3, config={})
        assert describe(address, "orders").broker_ids == {0, 1, 2}
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait(START_S_MAX) == 0
        assert all(is_gone(pid) for _, pid in brokers.values())
    assert "stopping all brokers: SIGTERM" in command.output
    for broker_id in range(3):
        assert command.output.count(f" INFO moldau.node.command broker {broker_id}: broker stopped in") == 1
    assert sorted(path.name for path in (tmp_path / "data").iterdir() if path.is_dir()) == [
        "broker-0",
        "broker-1",
        "broker-2",
    ]


def test_each_line_of_their_log_says_whose_it_is(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "2", "--port", "0", "--log-format", "json") as command:
        command.until('"brokers": ')
        lines = [json.loads(line) for line in command.output.splitlines()]
    assert {line.get("broker") for line in lines if "started in" in line["message"]} == {0, 1}


def test_a_stop_while_brokers_are_launched_is_one_of_all(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "12", "--port", "0") as command:
        pid = command.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        deadline_s = time.monotonic() + START_S_MAX
        while not children.read_text():
            assert time.monotonic() < deadline_s, command.output
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait(START_S_MAX) == 0
        assert "brokers started" not in command.output


def test_one_that_dies_is_told_of_and_the_others_go_on(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "2", "--port", "0") as command:
        brokers = command.brokers()
        os.kill(brokers[1][1], signal.SIGKILL)
        command.until(rf"broker 1 \(process {brokers[1][1]}\) ended with signal 9; 1 are left")
        assert describe(brokers[0][0], None).controller_id in (0, 1)
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(START_S_MAX) == 1


def test_no_broker_outlives_the_command(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "2", "--port", "0") as command:
        brokers = command.brokers()
        command.process.kill()
        deadline_s = time.monotonic() + START_S_MAX
        while not all(is_gone(pid) for _, pid in brokers.values()):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)


def test_one_that_dies_while_others_are_stopped_holds_up_nobody(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "3", "--port", "0") as command:
        pids = [pid for _, pid in command.brokers().values()]
        os.kill(pids[2], signal.SIGSTOP)
        command.process.send_signal(signal.SIGTERM)
        command.until("stopping all brokers: SIGTERM")
        os.kill(pids[1], signal.SIGKILL)
        deadline_s = time.monotonic() + START_S_MAX
        while Path(f"/proc/{pids[1]}").exists():  # until the command has seen its end
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        os.kill(pids[2], signal.SIGCONT)
        assert command.process.wait(START_S_MAX) == 0
        assert "Traceback" not in command.output
        assert all(map(is_gone, pids))


def test_if_one_can_not_start_none_does(tmp_path: Path) -> None:
    taken = tmp_path / "data" / "broker-1"
    taken.parent.mkdir()
    taken.write_text("no folder")
    with started(tmp_path, "--brokers", "2", "--port", "0") as command:
        assert command.process.wait(START_S_MAX) == 1
    assert "moldau start: not all brokers started; what kept one from it is above" in command.output
    assert re.search(r"moldau start: .*broker-1.*", command.output)


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        ("A://127.0.0.1:65534", "a port up to 65533: 3 brokers take one after the other"),
        ("A://127.0.0.1:9092,B://127.0.0.1:9094", "ports 3 apart from each other: 3 brokers take one after the other"),
    ],
)
def test_ports_that_do_not_suffice_are_refused_before_a_broker_starts(
    tmp_path: Path, listeners: str, expected: str
) -> None:
    protocols = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"
    overrides = (protocols, "inter.broker.listener.name=A", f"listeners={listeners}")
    arguments = [argument for each in overrides for argument in ("--override", each)]
    with started(tmp_path, "--brokers", "3", *arguments) as command:
        assert command.process.wait(START_S_MAX) == 2
        assert command.output == f"moldau start: Invalid value {listeners} for configuration listeners: {expected}\n"
        assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("count", ["-1", "three", "101"])
def test_a_number_of_brokers_that_may_not_be_is_refused(tmp_path: Path, count: str) -> None:
    with started(tmp_path, f"--brokers={count}") as command:
        assert command.process.wait(START_S_MAX) == 2
    assert f"argument --brokers: {count!r} is no number of brokers; expected 0 to 100" in command.output


def test_each_has_a_part_of_every_log_directory(tmp_path: Path) -> None:
    """One broker alone at first, whose metadata is in the second of its directories."""
    folders = [tmp_path / "a", tmp_path / "b"]
    overrides = {"log.dirs": ",".join(map(str, reversed(folders)))}
    with moldau.run(overrides=overrides) as alone:
        alone.create_topic("orders", partitions=4)
    with started(
        tmp_path, "--brokers", "2", "--port", "0", "--override", f"log.dirs={folders[0]},{folders[1]}"
    ) as command:
        brokers = command.brokers()
        address = brokers[0][0]
        assert len(describe(address, "orders").leaders) == 4
        create_topic(address, "replicated", partitions=4, replication_factor=2, config={})
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait(START_S_MAX) == 0
    for folder in folders:
        assert f"  data        {folder}\n" in command.output
        for broker_id in (0, 1):
            assert len(list((folder / f"broker-{broker_id}").glob("replicated-*"))) == 2
    assert not (folders[0] / "moldau-metadata.db").exists()


def refused(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of a start that gives up by itself."""
    (own := tmp_path / "refused").mkdir(exist_ok=True)
    with started(own, "--port", "0", *arguments, "--override", f"log.dirs={tmp_path / 'data'}") as command:
        return command.process.wait(START_S_MAX), command.output


def test_no_broker_of_another_command_joins_those_that_run(tmp_path: Path) -> None:
    """Broker 1 had no folder that was in use: it became a member while broker 0 was refused."""
    with started(tmp_path, "--brokers", "1", "--port", "0") as alone:
        alone.until("broker 0 of cluster .* answers clients")
        code, output = refused(tmp_path, "--brokers", "2")
        assert (code, output.count("\n")) == (1, 1), output
        assert f"moldau start: log directory {tmp_path / 'data'} is in use: process {alone.process.pid} holds" in output
    with started(tmp_path, "--brokers", "2", "--port", "0") as command:
        address = command.brokers()[0][0]
        code, output = refused(tmp_path, "--brokers", "3")
        assert (code, output.count("\n")) == (1, 1), output
        assert f"moldau start: log directory {tmp_path / 'data'} is in use: process {command.process.pid}" in output
        assert describe(address, None).broker_ids == {0, 1}
    assert not (tmp_path / "data" / "broker-2").exists()


def test_the_data_of_brokers_that_are_not_started_is_told_of(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "2", "--port", "0", "--override", "node.id=4") as command:
        assert sorted(command.brokers()) == [4, 5]
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait(START_S_MAX) == 0
    (tmp_path / "data" / "broker-5").rename(tmp_path / "data" / "broker-7")
    with started(tmp_path, "--brokers", "2", "--port", "0") as command:
        command.brokers()
        unused = "the data of broker 7 is there, and 2 brokers are started without"
        assert re.search(rf"WARNING .* {unused}.*; --brokers 4 starts them too", command.output)


def test_the_first_broker_is_the_one_whose_data_is_there(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "2", "--port", "0", "--override", "node.id=4") as command:
        command.brokers()
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait(START_S_MAX) == 0
    code, output = refused(tmp_path, "--brokers", "2", "--override", "broker.id=1")
    expected = f"4, the first broker whose data is in {tmp_path / 'data'}"
    assert output == f"moldau start: Invalid value 1 for configuration node.id: {expected}\n"
    assert code == 2
