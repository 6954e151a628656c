"""`moldau doctor` as a user runs it: this machine, and real clusters with real faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import moldau
from moldau.cli.main import main
from tests import apache_kafka
from tests.brokers import running_broker
from tests.cli.conftest import Tool, run_tool
from tests.clusters import Cluster, running_cluster
from tests.monitor.worlds import commit, produce

NOBODY = 65_534
SEEN_S_MAX = 60.0
HOUR_MS = 3_600_000

Rows = list[dict[str, Any]]


def examined(bootstrap: str, *arguments: str, code: int | None = None) -> Rows:
    finished = run_tool(bootstrap, "doctor", "--cluster", "-o", "json", *arguments)
    assert finished.stderr == ""
    assert code is None or finished.returncode == code, finished.stdout
    rows: Rows = json.loads(finished.stdout)
    return rows


def worse(rows: Rows) -> dict[str, dict[str, Any]]:
    return {each["check"]: each for each in rows if each["severity"] != "ok"}


def until(bootstrap: str, is_there: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    deadline_s = time.monotonic() + SEEN_S_MAX
    while not is_there(found := worse(examined(bootstrap))):
        assert time.monotonic() < deadline_s, found
    return found


def test_this_machine(tool: Tool, tmp_path: Path) -> None:
    finished = tool("doctor", "--machine", "--data", str(tmp_path), "--data", str(tmp_path / "new"), "-o", "json")
    assert finished.stderr == ""
    rows = json.loads(finished.stdout)
    assert {each["area"] for each in rows} == {"machine"}
    checks = {each["check"] for each in rows}
    assert checks >= {"vm.swappiness", "net.core.somaxconn", "dirty-pages", "open-files", "free-space", "python-build"}
    subjects = {each["subject"] for each in rows if each["check"] == "free-space"}
    assert subjects == {str(tmp_path), f"{tmp_path / 'new'} (not there yet)"}
    assert finished.returncode == int(any(each["severity"] == "problem" for each in rows))


def test_a_machine_in_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proc/sys/vm").mkdir(parents=True)
    (tmp_path / "proc/sys/vm/swappiness").write_text("60")
    monkeypatch.setenv("MOLDAU_DOCTOR_ROOT", str(tmp_path))
    # Its disk and its shell are those of this machine.
    assert main(["doctor", "--machine", "--strict", "--data", "/proc"]) == 1
    out = capsys.readouterr().out
    assert "  warning  vm.swappiness: 60, wanted 1\n" in out
    assert "           do:  sysctl -w vm.swappiness=1\n" in out
    assert "dirty_ratio" not in out, "what is fine, and what is not there, is counted only"
    assert main(["doctor", "--machine", "-v", "--data", "/proc"]) in (0, 1)
    assert "  ok       vm.dirty_ratio: this kernel does not show it here\n" in capsys.readouterr().out


def test_without_a_cluster_the_machine_is_looked_at(tool: Tool) -> None:
    finished = tool("doctor", "-b", "localhost:1", "-o", "json")
    rows = json.loads(finished.stdout)
    assert (finished.returncode, finished.stderr) == (1, "")
    (told,) = [each for each in rows if each["area"] == "cluster"]
    assert (told["severity"], told["seen"]) == (
        "problem",
        "it could not be asked: no broker answers at localhost:1",
    )
    assert len(rows) > 20


def test_a_cluster_that_was_asked_for_alone_has_to_be_there(tool: Tool) -> None:
    finished = tool("doctor", "--cluster", "-b", "localhost:1")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == "moldau doctor: no broker answers at localhost:1; start one with: moldau start\n"


def test_the_machine_is_looked_at_by_any_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    # Whoever that is may not read the project's folder: everything is imported before.
    program = (
        "import os; from importlib import import_module as load\n"
        "os.environ['HOME'] = '/nonexistent'\n"
        "from moldau.cli.main import main\n"
        "for name in ('command', 'machine.checks', 'machine.gathering', 'machine.watching'):\n"
        "    load(f'moldau.cli.doctor.{name}')\n"
        "import crc32c, json\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "raise SystemExit(main(['doctor', '--machine', '--data', '/root/logs', '--data', '/tmp', '-o', 'json']))"
    )
    finished = subprocess.run([sys.executable, "-c", program], cwd="/", capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    rows = json.loads(finished.stdout)
    assert [each["subject"] for each in rows if each["check"] == "log-directory"] == ["/root/logs"]
    assert {"vm.swappiness", "clock", "open-files"} <= {each["check"] for each in rows}


# Of the disk that the tests run on, which is not theirs to judge.
ROOM = {"log-directory-room"}

BAD_USE = [
    ("--machines", "unknown option --machines; did you mean --machine?"),
    ("orders", "unexpected argument 'orders'"),
    ("--watch soon", "argument --watch: 'soon' is no time; expected such as 30s, 12h, 7d or 1h30m"),
    ("--watch 0s", "argument --watch: '0s' is no time"),
    ("--cluster --data /data", "--data is about the machine, and --cluster leaves that out"),
    ("--cluster --watch 3s", "--watch is about the machine, and --cluster leaves that out"),
    ("-o xml", "argument -o/--output: 'xml' is no format"),
    ("-b x:y", "--bootstrap-server: 'x:y' has no port number; expected HOST:PORT"),
]


@pytest.mark.parametrize(("words", "message"), BAD_USE)
def test_bad_use_is_one_line(tool: Tool, words: str, message: str) -> None:
    finished = tool("doctor", *words.split())
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (2, "", 1)
    assert finished.stderr.startswith(f"moldau doctor: {message}")


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with running_cluster("moldau") as running:
        yield running


def create(bootstrap: str, *words: str) -> str:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    finished = run_tool(bootstrap, "topics", "create", name, *words)
    assert finished.returncode == 0, finished.stderr
    return name


def test_a_broker_is_lost_and_comes_back(three: Cluster) -> None:
    bootstrap = three.bootstrap_servers
    safe = ("-r", "3", "-c", "min.insync.replicas=2")
    replicated = create(bootstrap, "-p", "6", *safe)
    single = create(bootstrap, "-p", "3", "-r", "1")
    found = worse(examined(bootstrap, code=0))
    assert set(found) - ROOM == {"replication-factor"}
    assert found["replication-factor"]["subject"] == single

    three.kill(2)
    found = until(bootstrap, lambda seen: {"broker-missing", "under-replicated", "offline-partitions"} <= seen.keys())
    assert found["broker-missing"]["subject"] == "broker 2"
    assert found["broker-missing"]["severity"] == "problem"
    assert replicated in found["under-replicated"]["subject"]
    assert "broker 2 (6)" in found["under-replicated"]["seen"]
    assert found["offline-partitions"]["subject"].startswith(f"{single}-")
    assert found["offline-partitions"]["do"][0] == "start broker 2: it was in sync"
    assert "under-min-isr" not in found
    examined(bootstrap, code=1)

    three.restart(2)
    found = until(bootstrap, lambda seen: "under-replicated" not in seen and "offline-partitions" not in seen)
    assert "broker-missing" not in found
    (command,) = found["preferred-leaders"]["do"]
    assert replicated in found["preferred-leaders"]["subject"]
    assert command == "moldau leader-election --election-type preferred --all-topic-partitions"
    assert run_tool(bootstrap, *command.split()[1:]).returncode == 0
    assert "preferred-leaders" not in worse(examined(bootstrap, code=0))


def test_what_is_proposed_works(three: Cluster, tmp_path: Path) -> None:
    """More replicas for a topic that has one: the very commands that are told."""
    bootstrap = three.bootstrap_servers
    name = create(bootstrap, "-p", "2", "-r", "1")
    found = worse(examined(bootstrap))["replication-factor"]
    assert name in found["subject"]
    for at, command in enumerate(found["do"]):
        script = command.replace("moldau ", f"{sys.executable} -m moldau ", 1) if at else command
        environment = {**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": bootstrap}
        done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    moved = json.loads((tmp_path / "replicas.json").read_text())["partitions"][0]["topic"]
    until(bootstrap, lambda seen: moved not in seen.get("replication-factor", {"subject": ""})["subject"])


def lagging(bootstrap: str) -> tuple[str, str]:
    """A topic whose records are 50 minutes old and stay for an hour, and a group that has read one of them."""
    now_ms = time.time_ns() // 1_000_000
    configs = {"retention.ms": HOUR_MS, "segment.ms": 7 * 24 * HOUR_MS, "min.insync.replicas": 1}
    name = create(bootstrap, "-p", "1", *(word for key, value in configs.items() for word in ("-c", f"{key}={value}")))
    produce(bootstrap, name, {0: [now_ms - 50 * 60_000 + each for each in range(5)]})
    group = f"billing-{uuid.uuid4().hex[:8]}"
    commit(bootstrap, group, name, {0: 1})
    return name, group


def check_lagging(bootstrap: str, name: str, group: str) -> None:
    rows = [each for each in examined(bootstrap) if each["subject"] == f"group {group}"]
    (told,) = [each for each in rows if each["check"] == "retention-lag"]
    assert told["severity"] == "warning"
    assert told["seen"].startswith(f"its first unread record of {name}-0 may be deleted in ")
    assert told["seen"].split(" in ")[1].split()[0] in ("8", "9"), "minutes of the ten that are left"
    empty = worse(examined(bootstrap))["empty-groups"]
    assert f"{group} (4)" in empty["subject"]
    rolled = worse(examined(bootstrap))["segment-roll"]
    assert "keeps records for 1 h" in rolled["seen"]


def test_retention_and_segments_are_judged_by_records() -> None:
    """With a broker of its own: what is found of many topics or groups is one line, which names a few of them."""
    with moldau.run() as broker:
        bootstrap = broker.bootstrap_servers
        check_lagging(bootstrap, *lagging(bootstrap))
        name = create(bootstrap, "-p", "1")
        produce(bootstrap, name, {0: [time.time_ns() // 1_000_000 + HOUR_MS // 2]})
        told = worse(examined(bootstrap))["future-records"]
    assert told["subject"] == f"{name}-0"
    assert "29 min" in told["seen"]


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java, and Maven the first time")
def test_apache_kafka() -> None:
    with running_broker("apache") as bootstrap:
        found = worse(examined(bootstrap, code=0))
        assert set(found) - ROOM <= {"replication-factor", "features"}, (
            "an empty cluster of one broker has nothing to fear"
        )
        check_lagging(bootstrap, *lagging(bootstrap))
        name = create(bootstrap, "-c", "unclean.leader.election.enable=true")
        rows = examined(bootstrap, code=0)
        assert worse(rows)["unclean-election"]["subject"] == name
        fine = {each["check"] for each in rows if each["severity"] == "ok"}
        assert {"controller", "broker-reachable", "under-replicated", "releases"} <= fine
        assert "unasked" not in worse(rows)


def test_who_may_ask_nothing_is_told_once_of_each() -> None:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with moldau.run(overrides=properties) as broker:
        rows = examined(broker.bootstrap_servers, code=0)
    unasked = [each for each in rows if each["check"] == "unasked"]
    assert {each["subject"] for each in unasked} >= {"log directories", "reassignments of partitions"}
    assert len({each["subject"] for each in unasked}) == len(unasked)
    assert all("uthorization failed" in each["seen"] for each in unasked)
    assert [each["severity"] for each in rows if each["check"] == "broker-reachable"] == ["ok"]


def test_an_address_that_nobody_answers_is_found() -> None:
    """One broker of two advertises a port where nothing listens."""
    (free,) = apache_kafka.free_ports(1)
    with moldau.run(overrides={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{free}"}) as broker:
        # `run` tells the advertised address: the one that is bound is in the broker's own words.
        listening = next(iter(broker.addresses.values()))
        rows = examined(str(listening), code=1)
    told = worse(rows)["broker-reachable"]
    assert f"127.0.0.1:{free} does not answer" in told["seen"]
