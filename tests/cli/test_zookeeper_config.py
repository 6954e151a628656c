"""`moldau zookeeper-config` and `moldau metadata-move` as an operator runs them, with real servers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from moldau.cli.failures import UsageError
from moldau.cli.zookeeper_config import parse_servers
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.meta_properties import UnusableDirectory
from tests.apache_kafka import free_ports
from tests.cli.conftest import run_tool
from tests.cluster.asking import until
from tests.store.ensemble import Ensemble, is_available, jars

pytestmark = pytest.mark.xdist_group("store")


def configured(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_tool("", "zookeeper-config", *arguments)


def test_each_server_gets_its_files(tmp_path: Path) -> None:
    written = configured("--servers", "h1,h2;h3", "--dir", str(tmp_path), "--data-dir", "/data")
    assert (written.returncode, written.stderr) == (0, "")
    assert written.stdout.split() == [str(tmp_path / f"h{n}" / name) for n in (1, 2, 3) for name in ("zoo.cfg", "myid")]
    assert (tmp_path / "h2" / "myid").read_text() == "2\n"
    assert (tmp_path / "h2" / "zoo.cfg").read_text().splitlines() == [
        "tickTime=2000",
        "initLimit=20",
        "syncLimit=5",
        "dataDir=/data",
        "clientPort=2181",
        "autopurge.snapRetainCount=3",
        "autopurge.purgeInterval=24",
        "4lw.commands.whitelist=srvr,mntr,ruok",
        "admin.enableServer=false",
        "server.1=h1:2888:3888",
        "server.2=h2:2888:3888",
        "server.3=h3:2888:3888",
    ]
    again = configured("--servers", "h1,h2,h3", "--dir", str(tmp_path), "--data-dir", "/data")
    assert again.returncode == 0
    other = configured("--servers", "h1,h2", "--dir", str(tmp_path), "--data-dir", "/data")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == (
        f"moldau zookeeper-config: {tmp_path}/h1/zoo.cfg is there and differs; move it away, or choose another --dir\n"
    )


def test_servers_of_one_host_have_ports_of_their_own(tmp_path: Path) -> None:
    written = configured("--servers", "localhost:2181,localhost:2182", "--dir", str(tmp_path))
    assert written.stdout.splitlines()[-1] == "note: 2 servers survive the loss of 0, as 1 do"
    second = (tmp_path / "localhost-2" / "zoo.cfg").read_text().splitlines()
    assert {"clientPort=2182", "dataDir=/var/lib/zookeeper-2", "server.2=localhost:2889:3889"} <= set(second)


@pytest.mark.parametrize(
    "servers", ["", "h1,", "h1:port", "h1:70000", "h 1", "h1,h1", "h1,H1", "h1/x", "h1,h1:2182,h1-2"]
)
def test_servers_that_make_no_sense_are_refused(servers: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_servers(servers)
    assert str(refused.value).startswith(f"Invalid value {servers!r} for --servers: ")


@pytest.mark.parametrize("host", ["..", "a..b", 64 * "h"])
def test_a_host_that_nobody_can_look_up_is_refused(host: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_servers(f"h1,{host}:2181")
    expected = "a host whose parts between the dots have 1 to 63 characters"
    assert str(refused.value) == f"Invalid value {host!r} for --servers: expected {expected}"


def test_names_of_one_host_in_capitals_and_not_are_one_host() -> None:
    assert [(server.host, server.nth) for server in parse_servers("h1,H1:2182")] == [("h1", 0), ("h1", 1)]


def test_a_folder_that_can_not_be_written_is_named() -> None:
    refused = configured("--servers", "h1", "--dir", "/proc/none")
    expected = "moldau zookeeper-config: input or output: No such file or directory: /proc/none\n"
    assert (refused.returncode, refused.stderr) == (1, expected)


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    refused = configured("--servers", "h1,h2:port", "--dir", str(tmp_path))
    assert (refused.returncode, refused.stdout) == (2, "")
    expected = "Invalid value 'h1,h2:port' for --servers: expected host[:port][,host[:port]...]"
    assert refused.stderr == f"moldau zookeeper-config: {expected}\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_server_runs_with_what_was_written(tmp_path: Path) -> None:
    if not is_available():
        pytest.skip("a ZooKeeper server needs Java, and Maven the first time")
    server = f"127.0.0.1:{free_ports(1)[0]}"
    (tmp_path / "data").mkdir()
    configured("--servers", server, "--dir", str(tmp_path), "--data-dir", str(tmp_path / "data"))
    (tmp_path / "127.0.0.1" / "myid").rename(tmp_path / "data" / "myid")
    command = ["java", "-Xmx128M", "-cp", f"{jars()}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
    with subprocess.Popen([*command, str(tmp_path / "127.0.0.1" / "zoo.cfg")], stderr=subprocess.DEVNULL) as running:
        try:
            while configured("--servers", server, "--check").returncode != 0:
                assert running.poll() is None
        finally:
            running.kill()


def test_an_ensemble_is_looked_at(ensemble: Ensemble) -> None:
    healthy = configured("--servers", ensemble.connect, "--check")
    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert sorted(line.split()[1] for line in healthy.stdout.splitlines()[1:4]) == ["follower", "follower", "leader"]
    assert healthy.stdout.splitlines()[-1] == "3 of 3 servers serve; 1 more may be lost"
    lone = configured("--servers", f"{ensemble.connect},127.0.0.1:{free_ports(1)[0]}", "--check", "-o", "jsonl")
    assert lone.returncode == 0
    assert '"state": "no answer: Connection refused"' in lone.stdout.splitlines()[-1]
    absent = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    unwell = configured("--servers", f"127.0.0.1:{ensemble.ports[0]},{absent}", "--check")
    assert unwell.returncode == 1
    assert unwell.stderr == ("moldau zookeeper-config: 1 of 3 servers serve; a majority with a leader is needed\n")


def test_a_brokers_metadata_is_moved(ensemble: Ensemble, tmp_path: Path) -> None:
    data = tmp_path / "data"
    connect = f"{ensemble.connect}/moved"
    arguments = ("metadata-move", "--data-dir", str(data), "--zookeeper-connect", connect)
    with moldau.run(data_dir=data) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 3)])["orders"].result(60)
        refused = run_tool("", *arguments)
        assert refused.returncode == 1
        assert "is running; stop all brokers first" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    moved = run_tool("", *arguments)
    assert (moved.returncode, moved.stderr) == (0, "")
    assert moved.stdout.splitlines()[1] == f"start the brokers with zookeeper.connect={connect}"
    again = run_tool("", *arguments)
    assert again.stderr.endswith("moldau-metadata.db is missing\n")
    alone = run_tool("", "start", "--port", "0", "--data-dir", str(data))
    assert alone.returncode != 0
    assert (
        f"the metadata of {data} is in ZooKeeper at {connect}; start with zookeeper.connect={connect}" in alone.stderr
    )


def test_no_broker_starts_while_its_metadata_is_moved(tmp_path: Path) -> None:
    """One that did went on with the file that was set aside under it."""
    data = tmp_path / "data"
    moldau.run(brokers=2, data_dir=data).close()
    unanswered = f"127.0.0.1:{free_ports(1)[0]}"
    command = [sys.executable, "-m", "moldau", "metadata-move", "--data-dir", str(data)]
    with subprocess.Popen([*command, "--zookeeper-connect", unanswered], stderr=subprocess.PIPE) as mover:
        until(lambda: (data / ".lock").exists() and (data / ".lock").read_text() == f"{mover.pid}\n")
        until(lambda: (data / "broker-1" / ".lock").read_text() == f"{mover.pid}\n")
        for folder in (data / "broker-1", data):
            with pytest.raises(UnusableDirectory, match=f"is in use: process {mover.pid} holds"):
                DirectoryLock(str(folder))
        mover.kill()


def test_nothing_is_moved_while_one_of_several_brokers_has_its_folder(tmp_path: Path) -> None:
    (tmp_path / "moldau-metadata.db").touch()
    (tmp_path / "broker-3").mkdir()
    lock = DirectoryLock(str(tmp_path / "broker-3"))
    refused = run_tool("", "metadata-move", "--data-dir", str(tmp_path), "--zookeeper-connect", "127.0.0.1:1")
    lock.release()
    assert refused.returncode == 1
    assert refused.stderr.startswith("moldau metadata-move: a broker is running; stop all brokers first: log directory")


def test_a_wrong_way_to_move_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "moldau-metadata.db").touch()
    refused = run_tool("", "metadata-move", "--data-dir", str(tmp_path), "--zookeeper-connect", "h1:port")
    assert refused.returncode == 1
    expected = "Invalid value 'h1:port' for zookeeper.connect: expected host:port[,host:port...][/chroot]"
    assert refused.stderr == f"moldau metadata-move: {expected}\n"
