"""Every tool, badly used: one line on standard error, the exit code that fits, and nothing has changed.

In this process, for there are fifty tools; what the end of a process does is told apart elsewhere.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

import moldau
from moldau.cli import tools
from moldau.cli.main import main
from moldau.client.cluster import Cluster
from moldau.client.groups.committed import commit_offsets
from moldau.core.ids import TopicPartition
from moldau.store.sqlite import FILE_NAME
from tests.cli.bad_use import (
    BYTES,
    DELETION,
    DONE_ALL_THE_SAME,
    ELECTION,
    NOPE,
    ON_OUTPUT,
    PLAN,
    QUICK,
    SECRET,
    TOOLS,
    BadUse,
    Without,
)
from tests.cli.conftest import run_tool

NOWHERE = "localhost:1"
NO_TEXT = b"\xff\xfe\x00 = {"
NOTHING_IS_PERMITTED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}
DOCUMENTS = {
    PLAN: {"partitions": [{"topic": NOPE, "partition": 0, "replicas": [0]}]},
    ELECTION: {"partitions": [{"topic": NOPE, "partition": 0}]},
    DELETION: {"partitions": [{"topic": NOPE, "partition": 0, "offset": 1}]},
}
TOLD_BEFORE = "Processed a total of 0 messages\n"  # by Apache Kafka's console consumer, whatever happens
NOT_DONE = re.compile(r"Error: |error: |not found|producer_send_error|AuthorizationException")
Ended = tuple[int, str, str]
Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """One tool in a folder of its own: its exit code, and what it said on standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name, document in DOCUMENTS.items():
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / SECRET).write_text("secret\n")
    (tmp_path / QUICK).write_text("delivery.timeout.ms=500\nrequest.timeout.ms=500\nlinger.ms=0\n")
    monkeypatch.setenv("MOLDAU_TIMEOUT", "1")
    (tmp_path / BYTES).write_bytes(NO_TEXT)

    def one(name: str, line: str, *more: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
        code = main([name, *line.split(), *more])
        out, err = capsys.readouterr()
        return code, out, err

    return one


def is_one_line(told: str) -> bool:
    lines = told.removeprefix(TOLD_BEFORE).splitlines()
    return len(lines) == 1 and lines[0].startswith("moldau")


def check_failed(name: str, code: int, out: str, told: str) -> None:
    assert code == (0 if name in DONE_ALL_THE_SAME else 1), told
    if name in ON_OUTPUT and not told:
        assert NOT_DONE.search(out), out
        assert "Traceback" not in out
    else:
        assert is_one_line(told), told


class Broker:
    """One that makes no topics by itself, and what would tell of a change."""

    def __init__(self, embedded: moldau.EmbeddedBroker) -> None:
        self.servers = embedded.bootstrap_servers
        self._data = Path(embedded.data_dir)

    def state(self) -> tuple[list[bytes], dict[str, int]]:
        """What the metadata's log and the logs of partitions hold."""
        (store,) = self._data.rglob(FILE_NAME)
        with closing(sqlite3.connect(store)) as database:
            entries = [bytes(payload) for (payload,) in database.execute("SELECT payload FROM log ORDER BY position")]
        logs = {str(path.relative_to(self._data)): path.stat().st_size for path in self._data.rglob("*.log")}
        return entries, logs


@pytest.fixture(scope="module")
def open_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("open")
    with moldau.run(data_dir=folder, overrides={"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("orders")
        _use_groups_and_producer_ids(broker.bootstrap_servers)
        yield Broker(broker)


def _use_groups_and_producer_ids(servers: str) -> None:
    """Asking about a group makes the internal topic, and a producer takes a block of ids: that is no change here."""
    with Cluster(servers, client_id="test", timeout_s=20) as cluster:  # which waits for the coordinator
        assert set(commit_offsets(cluster, "billing", {TopicPartition("orders", 0): 0}).values()) == {0}
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce("orders", b"one")
    assert producer.flush(20) == 0


@pytest.fixture(scope="module")
def closed_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("closed")
    with moldau.run(data_dir=folder, overrides=NOTHING_IS_PERMITTED) as broker:
        yield Broker(broker)


def cases(of: Callable[[BadUse], str | Without]) -> pytest.MarkDecorator:
    lines = [(name, line) for name, use in TOOLS.items() if isinstance(line := of(use), str)]
    return pytest.mark.parametrize(("name", "line"), lines, ids=[name for name, _ in lines])


def test_the_table_has_every_tool() -> None:
    assert TOOLS.keys() == tools.TOOLS.keys()


@pytest.mark.parametrize("name", tools.TOOLS)
def test_a_wrong_option(run: Run, name: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, _, told = run(name, "--no-such-option")
    assert (code, is_one_line(told)) == (2, True), told
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", tools.TOOLS)
def test_an_argument_that_is_no_text(run: Run, name: str) -> None:
    code, _, told = run(name, "", b"x\xff".decode(errors="surrogateescape"))
    assert (code, is_one_line(told)) == (2, True), told
    assert "no text in UTF-8" in told


@cases(lambda use: use.asking)
def test_nobody_listens(run: Run, name: str, line: str) -> None:
    code, _, told = run(name, line, "--bootstrap-server", NOWHERE)
    assert (code, is_one_line(told)) == (1, True), told
    assert f"no broker answers at {NOWHERE}" in told


@cases(lambda use: use.unknown)
def test_what_is_not_there(run: Run, open_broker: Broker, name: str, line: str) -> None:
    before = open_broker.state()
    code, out, told = run(name, line, "--bootstrap-server", open_broker.servers)
    check_failed(name, code, out, told)
    assert open_broker.state() == before


@cases(lambda use: use.refused)
def test_nothing_is_permitted(run: Run, closed_broker: Broker, name: str, line: str) -> None:
    before = closed_broker.state()
    code, out, told = run(name, line, "--bootstrap-server", closed_broker.servers)
    check_failed(name, code, out, told)
    assert closed_broker.state() == before


@cases(lambda use: use.garbled)
def test_bytes_that_are_no_text(run: Run, open_broker: Broker, name: str, line: str) -> None:
    before = open_broker.state()
    more = [] if isinstance(TOOLS[name].asking, Without) else ["--bootstrap-server", open_broker.servers]
    code, _, told = run(name, line, *more)
    assert (code, is_one_line(told)) == (2, True), told
    assert open_broker.state() == before


def test_librdkafka_says_nothing_by_itself_of_what_is_fatal() -> None:
    """It writes past Python: only a process of its own tells."""
    with moldau.run(secure=True) as broker:
        broker.create_topic("orders")
        alice = given(broker.add_user("alice", "of-alice").confluent)
        rule = ["--principal", "User:alice", "--operation", "describe", "--topic", "orders"]
        added = run_tool(broker.bootstrap_servers, "acls", "add", *rule, *given(broker.clients.confluent))
        ended = run_tool(broker.bootstrap_servers, "produce", "orders", *alice, stdin="a\n")
    assert (added.returncode, ended.returncode, ended.stdout) == (0, 1, "")
    assert is_one_line(ended.stderr), ended.stderr
    assert "Cluster authorization failed" in ended.stderr


def given(properties: Mapping[str, object]) -> list[str]:
    return [word for key, value in properties.items() for word in ("-X", f"{key}={value}")]
