"""`moldau.run()`: a broker of one's own, from Python."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from moldau.embedded.overrides import as_property
from moldau.embedded.process import reachable

WAIT_S_MAX = 30.0
USERS_CODE = """\
import pytest
import moldau

def shop(broker: moldau.EmbeddedBroker) -> str:
    broker.create_topic("orders", partitions=3, config={"retention.ms": 1000})
    return broker.bootstrap_servers if broker.is_running else broker.output()

@pytest.fixture
def broker() -> moldau.EmbeddedBroker:
    try:
        return moldau.run(overrides={"num.partitions": 3}, port=0)
    except moldau.BrokerFailed as failed:
        raise RuntimeError(moldau.__version__) from failed

def wrong() -> None:
    moldau.rnu()
    moldau.run(prot=1)
"""


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
    assert not broker.is_running
    assert "broker stopped in " in broker.output()


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


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_its_output_outlives_it(end: str) -> None:
    broker = moldau.run()
    getattr(broker, end)()
    assert not broker.is_running
    assert "listening" in broker.output()


@pytest.mark.parametrize("end", ["stop", "kill", None])
def test_a_restart_has_the_same_data_on_the_same_port(end: str | None) -> None:
    with moldau.run() as broker:
        address, pid = broker.bootstrap_servers, broker.pid
        broker.create_topic("kept")
        if end is not None:
            getattr(broker, end)()
        broker.restart()
        assert broker.is_running
        assert broker.pid != pid
        assert broker.bootstrap_servers == address
        assert topics(address) == {"kept": 1}
        assert broker.output().count("listening") == 2
    with pytest.raises(moldau.BrokerFailed, match=r"`with` block has ended; its temporary folder is gone"):
        broker.restart()


def test_after_its_block_a_broker_says_how_to_go_on_with_its_data(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path / "data") as broker:
        pass
    with pytest.raises(moldau.BrokerFailed) as refused:
        broker.restart()
    assert f"moldau.run(data_dir='{tmp_path / 'data'}')" in str(refused.value)
    assert "gone" not in str(refused.value)


def test_a_restart_keeps_every_listener() -> None:
    several = {
        "listeners": "ONE://127.0.0.1:0,TWO://0.0.0.0:0",
        "advertised.listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        "inter.broker.listener.name": "ONE",
    }
    with moldau.run(overrides=several) as broker:
        addresses = broker.addresses
        broker.restart()
        assert broker.addresses == addresses
        assert topics(str(addresses["TWO"])) == {}


def test_a_restart_that_fails_says_why(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path / "data") as broker:
        broker.stop()
        with moldau.run(data_dir=tmp_path / "data"), pytest.raises(moldau.BrokerFailed) as failed:
            broker.restart()
        assert not broker.is_running
        assert str(tmp_path / "data") in str(failed.value)
        assert "listening" not in str(failed.value), "only what the second start printed"
        broker.restart()


def test_topics_are_made_without_a_client() -> None:
    with moldau.run(overrides={"num.partitions": 4}) as broker:
        broker.create_topic("orders", partitions=3, config={"retention.ms": 60_000, "preallocate": False})
        broker.create_topic("payments")
        assert topics(broker.bootstrap_servers) == {"orders": 3, "payments": 4}
        with pytest.raises(moldau.RequestFailed, match="already exists") as refused:
            broker.create_topic("orders")
        assert refused.value.error == "TOPIC_ALREADY_EXISTS"
        with pytest.raises(moldau.RequestFailed, match="INVALID_CONFIG"):
            broker.create_topic("more", config={"retention": 1})
        broker.stop()
        with pytest.raises(moldau.BrokerFailed, match="does not run"):
            broker.create_topic("late")


@pytest.mark.parametrize("key", ["num.partition", "num_partitions", "Num.Partitions"])
def test_an_unknown_override_is_refused_with_the_key_that_was_meant(key: str) -> None:
    with pytest.raises(
        ValueError, match=rf"'{key}' is no configuration key of a broker; did you mean 'num.partitions'"
    ):
        moldau.run(overrides={key: 3})


def test_a_broker_that_nobody_holds_ends() -> None:
    broker = moldau.run()
    pid, folder = broker.pid, broker.data_dir
    del broker
    gc.collect()
    assert not is_alive(pid)
    assert not folder.exists()


def test_a_forked_process_leaves_the_broker_alone() -> None:
    script = (
        "import moldau, os, sys; broker = moldau.run(); child = os.fork()\n"
        "if not child: sys.exit(0)\n"
        "os.waitpid(child, 0); print(broker.is_running, broker.data_dir.is_dir()); broker.create_topic('still-there')"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (finished.stdout, finished.returncode) == ("True True\n", 0), finished.stderr


def test_the_package_shows_what_it_has() -> None:
    assert {"run", "BrokerFailed", "EmbeddedBroker", "RequestFailed", "Address"} <= set(dir(moldau))
    assert all(getattr(moldau, name) is not None for name in moldau.__all__)
    with pytest.raises(AttributeError, match="rnu"):
        moldau.rnu  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_client_and_no_broker() -> None:
    script = "import moldau, sys; moldau.run; print(*[m for m in sys.modules if m.startswith(('moldau', 'confluent'))])"
    loaded = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert {name.partition(".")[0] for name in loaded} == {"moldau"}
    assert {name.split(".")[1] for name in loaded if "." in name} == {"embedded"}


def test_type_checkers_see_what_users_get(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(USERS_CODE)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "shop.py"]
    command[3:3] = ["--config-file", os.devnull]
    source = Path(moldau.__file__).parents[1]
    checked = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": str(source)}
    )
    assert re.findall(r"shop.py:(\d+): error: (.*?) +\[", checked.stdout) == [
        ("16", 'Module has no attribute "rnu"'),
        ("17", 'Unexpected keyword argument "prot" for overloaded function "run"'),
    ], checked.stdout


def test_stopping_twice_is_stopping_once() -> None:
    broker = moldau.run()
    broker.stop()
    broker.stop()
    broker.kill()


def test_a_broker_that_does_not_start_says_why() -> None:
    with pytest.raises(moldau.BrokerFailed, match=r"exit code 2(.|\n)*num\.partitions"):
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
    assert str(reachable(moldau.Address("0.0.0.0", 1))) == "127.0.0.1:1"
    assert str(reachable(moldau.Address("192.0.2.1", 1))) == "192.0.2.1:1"
    assert str(moldau.Address("::1", 1)) == "[::1]:1"


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (3, "3"), ("a,b", "a,b")])
def test_values_are_spelled_as_in_a_properties_file(value: object, text: str) -> None:
    assert as_property(value) == text


@pytest.mark.parametrize("key", ["listeners", "log.dirs", "log.dir", "broker.id"])
def test_a_key_that_each_broker_of_a_cluster_has_for_itself_is_refused(key: str) -> None:
    """Their values were overruled, silently: the data was in a temporary folder."""
    with pytest.raises(ValueError, match=f"'{key}' is each broker's own in a cluster; "):
        moldau.run(brokers=2, overrides={key: "4"})


@pytest.mark.parametrize("brokers", [0, -1, "3", 2.5])
def test_a_number_of_brokers_that_may_not_be_is_refused(brokers: int) -> None:
    with pytest.raises(ValueError, match=rf"brokers={brokers!r}: expected 1 or more"):
        moldau.run(brokers=brokers)
