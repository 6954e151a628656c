"""`moldau.run()`: a broker of one's own, from Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from moldau.embedded import Address, BrokerFailed, as_property, reachable

WAIT_S_MAX = 30.0


def topics(bootstrap_servers: str) -> dict[str, int]:
    listed = AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(timeout=WAIT_S_MAX).topics
    return {name: len(topic.partitions) for name, topic in listed.items()}


def create(bootstrap_servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic)])[topic].result(WAIT_S_MAX)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that nobody has waited for yet is still in the table.
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_a_broker_for_the_length_of_a_block() -> None:
    with moldau.run() as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        assert topics(broker.bootstrap_servers) == {}
        assert is_alive(broker.pid)
        data_dir = broker.data_dir
        assert data_dir.is_dir()
        assert "listening" in broker.output()
    assert not is_alive(broker.pid)
    assert not data_dir.exists()


def test_overrides_are_kafkas_keys() -> None:
    with moldau.run(overrides={"num.partitions": 3, "auto.create.topics.enable": False}) as broker:
        create(broker.bootstrap_servers, "orders")
        assert topics(broker.bootstrap_servers) == {"orders": 3}


def test_two_brokers_at_once_share_nothing() -> None:
    with moldau.run() as one, moldau.run() as other:
        create(one.bootstrap_servers, "only-here")
        assert one.port != other.port
        assert topics(other.bootstrap_servers) == {}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_folder_that_is_given_is_kept(tmp_path: Path, end: str) -> None:
    with moldau.run(data_dir=tmp_path / "data") as broker:
        create(broker.bootstrap_servers, "kept")
        getattr(broker, end)()
    with moldau.run(data_dir=tmp_path / "data", port=broker.port) as again:
        assert again.port == broker.port
        assert topics(again.bootstrap_servers) == {"kept": 1}


def test_stopping_twice_is_stopping_once() -> None:
    broker = moldau.run()
    broker.stop()
    broker.stop()
    broker.kill()


def test_a_broker_that_does_not_start_says_why() -> None:
    with pytest.raises(BrokerFailed, match=r"exit code 2(.|\n)*num\.partitions"):
        moldau.run(overrides={"num.partitions": "many"})


def test_a_properties_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=4\n")
    with moldau.run(properties=file) as broker:
        create(broker.bootstrap_servers, "orders")
        assert topics(broker.bootstrap_servers) == {"orders": 4}


def test_it_dies_with_the_process_that_started_it() -> None:
    script = (
        "import moldau, time; broker = moldau.run();"
        "print(broker.pid, broker.data_dir, sep=chr(10), flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        broker_pid = int(parent.stdout.readline())
        data_dir = Path(parent.stdout.readline().decode().strip())
        assert data_dir.is_dir()
        assert is_alive(broker_pid)
        parent.send_signal(signal.SIGKILL)
    deadline_s = time.monotonic() + WAIT_S_MAX
    while is_alive(broker_pid):
        assert time.monotonic() < deadline_s, "the broker has outlived its owner"
        time.sleep(0.05)
    assert not data_dir.parent.exists()


def test_addresses() -> None:
    assert str(reachable("0.0.0.0", 1)) == "127.0.0.1:1"
    assert str(reachable("192.0.2.1", 1)) == "192.0.2.1:1"
    assert str(Address("::1", 1)) == "[::1]:1"


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (3, "3"), ("a,b", "a,b")])
def test_values_are_spelled_as_in_a_properties_file(value: object, text: str) -> None:
    assert as_property(value) == text
