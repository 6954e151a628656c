"""The guide to running a broker: its unit is sound, its backups can be started, its log is rotated."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import moldau
from tests.guides.code_blocks import blocks

GUIDE = "docs/guides/operating.md"
WAIT_S_MAX = 30.0


def write(broker: moldau.EmbeddedBroker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "backup"})
    producer.init_transactions(WAIT_S_MAX)
    producer.begin_transaction()
    for number in range(count):
        producer.produce("orders", str(number))
    producer.commit_transaction(WAIT_S_MAX)


def read(broker: moldau.EmbeddedBroker, count: int, *, group: str) -> list[int]:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.subscribe(["orders"])
    found = [int(message.value()) for message in consumer.consume(count, timeout=WAIT_S_MAX)]
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def committed(broker: moldau.EmbeddedBroker, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    (partition,) = consumer.committed([TopicPartition("orders", 0)], timeout=WAIT_S_MAX)
    consumer.close()
    return int(partition.offset)


@pytest.mark.parametrize("how", ["stopped", "snapshot"])
def test_a_backup_can_be_started(how: str, tmp_path: Path) -> None:
    """A broker that is paused while its files are copied leaves what a snapshot of the file system has."""
    with moldau.run(data_dir=tmp_path / "data") as broker:
        write(broker, 1_000)
        assert len(read(broker, 300, group="half")) == 300
        if how == "stopped":
            broker.stop()
            shutil.copytree(tmp_path / "data", tmp_path / "backup")
        else:
            os.kill(broker.pid, signal.SIGSTOP)
            shutil.copytree(tmp_path / "data", tmp_path / "backup")
            os.kill(broker.pid, signal.SIGCONT)
    with moldau.run(data_dir=tmp_path / "backup") as restored:
        assert read(restored, 1_000, group="new") == list(range(1_000))
        assert committed(restored, "half") == 300
        write(restored, 10)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(WAIT_S_MAX)
        yield listening


def test_a_supervisor_is_told_of_start_and_stop(supervisor: socket.socket, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau", "start", "--port", "0", "--log-format", "json"]
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as broker:
        assert supervisor.recv(100) == b"READY=1"
        broker.terminate()
        assert supervisor.recv(100) == b"STOPPING=1"
        assert broker.wait(WAIT_S_MAX) == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd's tools")
def test_the_service_unit_is_sound(tmp_path: Path) -> None:
    (unit,) = blocks(GUIDE, "ini")
    command = re.search(r"^ExecStart=(\S+) (.*)$", unit, re.MULTILINE)
    assert command is not None
    # systemd looks whether the program is there.
    program = Path(sys.executable).with_name("moldau")
    assert program.name == Path(command[1]).name
    (tmp_path / "moldau.service").write_text(unit.replace(command[1], str(program)))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "moldau.service")],
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
        check=False,
    )
    complaints = [line for line in checked.stderr.splitlines() if "moldau.service" in line]
    assert not complaints


def test_the_properties_of_the_guide_are_taken(tmp_path: Path) -> None:
    (properties,) = blocks(GUIDE, "properties")
    (tmp_path / "server.properties").write_text(properties)
    # The guide's addresses and folder are not a test's to take.
    with moldau.run(
        properties=tmp_path / "server.properties", overrides={"log.dirs": str(tmp_path / "data")}
    ) as broker:
        assert "WARNING" not in broker.output()
