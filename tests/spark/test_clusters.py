"""The guide to clusters on a real one: its commands, a master with two workers, and checkpoints in an object store."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.running.state.locks import RENEW_S
from moldau.spark.storage import folder_without_session
from tests.apache_kafka import free_ports
from tests.brokers import PROJECT
from tests.spark.object_store import PACKAGES_SETTINGS, ObjectStore, running_object_store
from tests.spark.servers import INSTALLED, fill_environment, spark_server, wait_for_port
from tests.spark.topics import Topics

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

GUIDE = PROJECT / "docs" / "guides" / "spark-clusters.md"
HOSTS = ("127.0.0.1", "127.0.0.2")
COMMAND_S_MAX = 400.0
PACKED = "./environment/bin/python"
INSTALLING = "environment/bin/pip install 'moldau[spark]'\n"


@dataclass(frozen=True, slots=True)
class Terminal:
    """A folder with the guide's environment and pipeline, and a cluster to give it to."""

    folder: Path
    port: int
    bootstrap: str
    blocks: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def master(self) -> str:
        return f"spark://{HOSTS[0]}:{self.port}"

    def said(self, text: str) -> str:
        """The guide's text with the addresses and paths of this run."""
        text = text.replace("localhost:9092", self.bootstrap).replace(f"{HOSTS[0]}:7077", f"{HOSTS[0]}:{self.port}")
        return text.replace("--port 7077", f"--port {self.port}").replace("/mnt/shared", str(self.folder / "shared"))

    def run(self, command: str, *, exit_code: int = 0, python: str | None = None) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", self.said(command)],
            cwd=self.folder,
            env={**self.environment, **({"PYSPARK_PYTHON": python} if python else {})},
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        assert done.returncode == exit_code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr


@contextmanager
def cluster_of(terminal: Terminal, master: str, worker: str) -> Iterator[None]:
    """Two workers, each with an address of its own, as the guide starts them."""
    output = terminal.folder / "cluster.txt"
    with ExitStack() as stack:

        def started(command: str, *own: str) -> subprocess.Popen[bytes]:
            _, *words = terminal.said(command).split()
            memory = {"SPARK_DAEMON_MEMORY": "256m"}
            server = spark_server("spark-class", [*words[:1], *own, *words[1:]], output=output, environment=memory)
            return stack.enter_context(server)

        serving = started(master, "--webui-port", "0")
        wait_for_port(HOSTS[0], terminal.port, serving, output=output)
        for host in HOSTS:
            own = ("--webui-port", "0", "--work-dir", str(terminal.folder / f"work-{host}"))
            started(worker.replace(f"--host {HOSTS[0]}", f"--host {host}"), *own)
        yield


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, bootstrap: str) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("terminal")
    (port,) = free_ports(1)
    part = GUIDE.read_text().partition("## Standalone")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(?:sh|sql)\n(.*?)```", part, re.DOTALL)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "PYTHON", "VIRTUAL"))}
    made = Terminal(folder, port, bootstrap, blocks, {**kept, "SPARK_LOCAL_IP": HOSTS[0], "SPARK_HOME": str(INSTALLED)})
    install, master, worker, pipeline, *_ = blocks
    assert INSTALLING in install
    make, pack = install.split(INSTALLING)
    made.run(make.replace("python3", sys.executable))
    fill_environment(folder / "environment")
    made.run(pack)
    (folder / "orders.sql").write_text(made.said(pipeline))
    with cluster_of(made, master, worker):
        yield made


def test_the_guide_from_nothing_to_results(terminal: Terminal, topics: Topics) -> None:
    checking, running = terminal.blocks[4:]
    topics.admin.delete_topics(["orders", "large-orders"])
    topics.produce("orders", [json.dumps({"id": number, "amount": number * 60.0}) for number in range(5)])
    told = terminal.run(checking)
    executors = [line for line in told.splitlines() if line.startswith("executor on ")]
    assert len(executors) == len(HOSTS), told
    assert all(line.endswith("packages and brokers are there") for line in executors), told
    assert "nothing is wrong" in told
    told = terminal.run(running)
    assert "large: done  5 rows" in told, told
    assert [json.loads(value or b"")["id"] for value in topics.values("large-orders")] == [2, 3, 4]
    assert (terminal.folder / "shared" / "orders" / "_moldau" / "status.json").exists()
    # As spark-submit starts it inside of a cluster, which a master of this kind does for the JVM only.
    topics.produce("orders", [json.dumps({"id": 5, "amount": 300.0})])
    program = PROJECT / "src" / "moldau" / "cli" / "pipeline" / "submitted.py"
    terminal.run(
        f"{INSTALLED}/bin/spark-submit --master {terminal.master} --conf spark.archives=environment.tar.gz#environment "
        f"--conf spark.ui.enabled=false {program} run orders.sql --once --quiet",
        python=PACKED,
    )
    assert [json.loads(value or b"")["id"] for value in topics.values("large-orders")] == [2, 3, 4, 5]


def test_what_executors_lack_is_said_in_words(terminal: Terminal) -> None:
    command = f"environment/bin/moldau pipeline check orders.sql --master {terminal.master}"
    venv.create(terminal.folder / "bare", symlinks=True)
    bare = terminal.run(command, exit_code=1, python=str(terminal.folder / "bare" / "bin" / "python"))
    assert bare.count(" lacks the package moldau ") == len(HOSTS), bare
    assert "; the package confluent-kafka " in bare
    assert "2 of 2 executors lack something" in bare
    none = terminal.run(command, exit_code=1, python="./nowhere/bin/python")
    assert "./nowhere/bin/python: not found; Python 3." in none, none
    assert "executors can't run a task in Python: " in none
    away = f"{command} --set bootstrap.servers=127.0.0.1:1"
    told = terminal.run(away, exit_code=1, python=PACKED)
    assert told.count("lacks a way to the brokers at 127.0.0.1:1: ") == len(HOSTS), told


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


def test_an_object_store_is_a_folder_like_any_other(store: ObjectStore) -> None:
    store.create_bucket("lake")
    folder = folder_without_session("s3a://lake/kept", {**PACKAGES_SETTINGS, **store.spark_settings})
    assert (folder.read("a/b"), folder.names()) == (None, [])
    folder.write("a/b", b"one")
    folder.write("a/b", b"two")
    with ThreadPoolExecutor(4) as pool:
        made: list[bool] = list(pool.map(lambda number: folder.create("lock", b"%d" % number), range(4)))
    assert made.count(True) == 1, made
    assert folder.read("lock") == b"%d" % made.index(True)
    assert (folder.read("a/b"), folder.names()) == (b"two", ["a", "lock"])
    for name in ("a", "lock", "lock", "nothing"):
        folder.delete(name)
    assert folder.names() == []


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_checkpoint_lock_and_status_in_an_object_store(
    terminal: Terminal, topics: Topics, store: ObjectStore, where: str
) -> None:
    store.create_bucket("lake")
    source, target = topics.create(partitions=2), topics.create(partitions=1)
    topics.produce(source, [b"%d" % number for number in range(10)])
    path = terminal.folder / "stored.sql"
    settings = {**PACKAGES_SETTINGS, **store.spark_settings, "spark.archives": "environment.tar.gz#environment"}
    lines = [f"set {key} = '{value}';" for key, value in settings.items()]
    path.write_text(
        "\n".join(lines)
        + f"""
        set bootstrap.servers = '{terminal.bootstrap}';
        set checkpoint = 's3a://lake/checkpoints/stored';
        create stream numbers from topic '{source}' with (valueFormat = string);
        create sink copies into topic '{target}' as select value from numbers;
        """
    )
    moldau = "environment/bin/moldau pipeline"
    master = "local[2]" if where == "here" else terminal.master
    if where == "cluster":
        told = terminal.run(f"{moldau} check stored.sql --master {master}", python=PACKED)
        assert told.count("packages and brokers are there") == len(HOSTS), told
    terminal.run(f"{moldau} run stored.sql --once --master {master}", python=PACKED)
    topics.produce(source, [b"10"])
    terminal.run(f"{moldau} run stored.sql --once --master {master}", python=PACKED)
    assert sorted(int(value or b"") for value in topics.values(target)) == list(range(11))
    names = store.names("lake")
    assert "checkpoints/stored/_moldau/status.json" in names
    assert "checkpoints/stored/copies/commits/1" in names
    assert not [name for name in names if "lock-" in name or "_moldau-check" in name]
    assert not (terminal.folder / "s3a:").exists()
    status = json.loads(terminal.run(f"{moldau} status stored.sql -o json 2>/dev/null", python=PACKED))
    assert (status[0]["query"], status[0]["state"]) == ("copies", "done")
    with locked_elsewhere(store, "checkpoints/stored/_moldau/lock-00000001"):
        told = terminal.run(f"{moldau} run stored.sql --once --master local[1]", exit_code=1, python=PACKED)
    assert "process 71 on head runs this pipeline already" in told
    assert "forgot the progress of copies" in terminal.run(f"{moldau} reset stored.sql --yes", python=PACKED)
    shutil.rmtree(terminal.folder / ".moldau", ignore_errors=True)


def test_tables_in_an_object_store(terminal: Terminal, topics: Topics, store: ObjectStore) -> None:
    """What Spark is told about the store is enough for the tables, and for executors that were told nothing."""
    store.create_bucket("lake")
    source = topics.create(partitions=2)
    path = terminal.folder / "lake.sql"
    settings = {**PACKAGES_SETTINGS, **store.spark_settings, "spark.archives": "environment.tar.gz#environment"}
    lines = [f"set {key} = '{value}';" for key, value in settings.items()]
    catalog = f"sqlite:///{terminal.folder}/catalog.db"
    path.write_text(
        "\n".join(lines)
        + f"""
        set bootstrap.servers = '{terminal.bootstrap}';
        set checkpoint = 's3a://lake/checkpoints/lake';
        set spark.sql.shuffle.partitions = 2;
        create stream numbers from topic '{source}' with (valueFormat = json, valueSchema = 'id bigint');
        create sink all_of_them into delta 's3a://lake/numbers' as select id from numbers;
        create sink latest into iceberg 'shop.latest' with (
            warehouse = 's3a://lake/warehouse', catalog.type = sql, catalog.uri = '{catalog}'
        ) key (id) upsert as select id % 5 as id, max(id) as newest from numbers group by id % 5;
        """
    )
    moldau = "environment/bin/moldau"
    for ids in (range(10), range(10, 14)):
        topics.produce(source, [json.dumps({"id": number}) for number in ids])
        terminal.run(f"{moldau} pipeline run lake.sql --once --master {terminal.master}", python=PACKED)
    variables = " ".join(f"{key}={value}" for key, value in store.environment.items())
    told = json.loads(terminal.run(f"{variables} {moldau} tables describe s3a://lake/numbers -o json"))
    assert (told["format"], told["rows"]) == ("delta", 14)
    named = f"s3a://lake/warehouse --table shop.latest --option catalog.type=sql --option catalog.uri={catalog}"
    told = json.loads(terminal.run(f"{variables} {moldau} tables describe {named} -o json"))
    assert (told["format"], told["rows"]) == ("iceberg", 5)
    assert not list(terminal.folder.rglob("s3a:*"))


@contextmanager
def locked_elsewhere(store: ObjectStore, name: str) -> Iterator[None]:
    """By another machine, which renews its lock."""
    over = threading.Event()

    def renew() -> None:
        told = {"token": "t", "host": "head", "pid": 71, "machine": "another", "born": "1"}
        while True:
            store.put("lake", name, json.dumps({**told, "renewed_ms": SystemClock().now_ms()}).encode())
            if over.wait(RENEW_S):
                return

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()
        store.delete("lake", name)
