"""A broker whose metadata is in ZooKeeper: what it starts with, and what it refuses to start with, in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import moldau
from tests.cluster.members import chroot, start_member
from tests.store.ensemble import Ensemble


def refused(*overrides: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moldau", "start", "--no-kafka-environment", "--port", "0"]
    settings = [word for override in overrides for word in ("--override", override)]
    return subprocess.run(
        [*command, "--data-dir", str(folder / "data"), *settings],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("servers", ["h1:port", "h1:2181/a//b", ":2181"])
def test_what_names_no_servers_is_a_wrong_value(tmp_path: Path, servers: str) -> None:
    ended = refused(f"zookeeper.connect={servers}", folder=tmp_path)
    expected = (
        f"Invalid value {servers} for configuration zookeeper.connect: expected host:port[,host:port...][/chroot]"
    )
    assert (ended.returncode, ended.stderr) == (2, f"moldau start: {expected}\n")


def test_metadata_is_in_one_place(tmp_path: Path) -> None:
    ended = refused("zookeeper.connect=a:2181", "etcd.connect=b:2379", folder=tmp_path)
    assert ended.returncode == 2
    assert "Only one of zookeeper.connect and etcd.connect should be set" in ended.stderr


@pytest.mark.parametrize(
    ("kind", "timeout"), [("ZooKeeper", "zookeeper.connection"), ("etcd", "initial.broker.registration")]
)
def test_servers_that_do_not_answer_are_tried_for_a_while(tmp_path: Path, kind: str, timeout: str) -> None:
    ended = refused(f"{kind.lower()}.connect=127.0.0.1:1/a", f"{timeout}.timeout.ms=1500", folder=tmp_path)
    waiting, gave_up = ended.stderr.splitlines()
    assert waiting.endswith(f"no answer from {kind} at 127.0.0.1:1/a yet; trying for 1.5 s")
    assert gave_up == f"moldau start: no {kind} server of 127.0.0.1:1/a has answered for 1.5 s"
    assert ended.returncode == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.xdist_group("store")
def test_data_stays_with_its_metadata(ensemble: Ensemble, tmp_path: Path) -> None:
    connect, elsewhere = ensemble.connect + chroot(), ensemble.connect + chroot()
    data = tmp_path / "data-1"
    with start_member(1, tmp_path, connect) as broker:
        broker.create_topic("orders")
        (tmp_path / "copy").mkdir()
        with pytest.raises(moldau.BrokerFailed, match=rf"broker 1 is already running as process {broker.pid} on "):
            start_member(1, tmp_path / "copy", connect)
    with pytest.raises(moldau.BrokerFailed) as without:
        moldau.run(data_dir=data, overrides={"node.id": 1})
    assert f"the metadata of {data} is in ZooKeeper at {connect}; start with zookeeper.connect={connect}" in str(
        without.value
    )
    with pytest.raises(moldau.BrokerFailed) as empty:
        start_member(1, tmp_path, elsewhere)
    assert f"{data} has data, and ZooKeeper at {elsewhere} has no metadata of it; it was ZooKeeper at {connect}" in str(
        empty.value
    )
    with start_member(2, tmp_path, elsewhere):
        pass
    with pytest.raises(
        moldau.BrokerFailed, match=rf"{data}/meta.properties says the data belongs to cluster .*; this is"
    ):
        start_member(1, tmp_path, elsewhere)
    with start_member(1, tmp_path, connect) as again:
        assert "1 topics with 1 partitions" in again.output()


@pytest.mark.xdist_group("store")
def test_metadata_beside_the_data_is_moved_first(ensemble: Ensemble, tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path / "data-1", overrides={"node.id": 1}):
        pass
    with pytest.raises(moldau.BrokerFailed) as refusal:
        start_member(1, tmp_path, ensemble.connect + chroot())
    path = tmp_path / "data-1" / "moldau-metadata.db"
    assert f"{path} is this data's metadata, and zookeeper.connect is set; move it there" in str(refusal.value)


def test_a_lone_broker_loads_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import sys, threading, os, signal\n"
        "from moldau.node import command\n"
        "from moldau.node import announcing\n"
        "said = announcing.say\n"
        "def say(text):\n"
        "    print(sorted(name for name in sys.modules if name.split('.')[0] == 'kazoo' or 'metadata_service' in name"
        " or name.startswith(('moldau.store.tree', 'moldau.store.etcd', 'moldau.node.cluster.evidence'))))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "announcing.say = say\n"
        f"sys.exit(command.main(['--port', '0', '--data-dir', {str(tmp_path / 'data')!r}]))\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "MOLDAU_"))}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr
