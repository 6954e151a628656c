"""Pipelines on a real YARN, as the guide to clusters says: the driver in a container, killed and stopped, and here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spark.object_store import PACKAGES_SETTINGS, ObjectStore, running_object_store
from tests.spark.servers import INSTALLED, fill_environment
from tests.spark.topics import Topics
from tests.spark.yarn import Yarn, command_lines, is_available, running_yarn

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not is_available(), reason="YARN needs Java, and Maven the first time"),
]

PACKED = "./environment/bin/moldau-python"
COMMAND_S_MAX = 900.0
WAIT_S_MAX = 600.0
SECRETS = {"STORE_KEY": "swordfish-of-the-store", "STORE_SECRET": "hunter2-of-the-store"}
SMALL = {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.yarn.am.memory": "512m",
    # In the place of an archive of Spark's own jars in HDFS: they are at the same path everywhere.
    "spark.yarn.jars": f"local:{INSTALLED}/jars/*",
    # On any machine some event is too slow, and told at length.
    "spark.scheduler.listenerbus.logSlowEvent.threshold": "1ms",
    "spark.log.level": "INFO",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
}
PIPELINE = """
set checkpoint = 's3a://lake/checkpoints/orders';
set spark.yarn.dist.archives = 'environment.tar.gz#environment';
set spark.hadoop.fs.s3a.access.key = '${env:STORE_KEY}';
include 'more/functions.py';
create stream orders from topic 'SOURCE' with (valueFormat = json, valueSchema = 'id bigint');
create sink copies into topic 'TARGET' key (id) as select id from orders;
create sink kept into delta 's3a://lake/kept' as select id from orders;
"""
FUNCTIONS = """
from moldau.spark.pipelines.building import Pipeline

pipeline = Pipeline("functions")
"""


@dataclass(frozen=True, slots=True)
class World:
    folder: Path
    yarn: Yarn
    store: ObjectStore
    topics: Topics
    source: str
    target: str

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "PYTHON", "VIRTUAL"))}
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(INSTALLED), "PYSPARK_PYTHON": PACKED}
        return {**kept, **self.yarn.environment, **SECRETS, **own}

    def command(self, *words: str) -> list[str]:
        own = (
            "--set",
            f"bootstrap.servers={self.topics.bootstrap}",
            "--set",
            "spark.hadoop.fs.s3a.secret.key=${env:STORE_SECRET}",
        )
        return ["environment/bin/moldau", "pipeline", words[0], "orders.sql", *words[1:], *own]

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def submitted(self) -> Iterator[subprocess.Popen[bytes]]:
        command = self.command("run", "--master", "yarn", "--deploy-mode", "cluster")
        with (self.folder / "submitted.txt").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def produce(self, start: int, end: int) -> None:
        self.topics.produce(self.source, [json.dumps({"id": number}) for number in range(start, end)])

    def records(self) -> list[int]:
        """Of the topic."""
        return sorted(json.loads(value or b"")["id"] for value in self.topics.values(self.target))

    def rows(self) -> list[int]:
        """Of the table."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        options = {**self.store.environment, "AWS_ALLOW_HTTP": "true"}
        try:
            found: list[int] = (
                DeltaTable("s3://lake/kept", storage_options=options).to_pyarrow_table()["id"].to_pylist()
            )
        except TableNotFoundError:
            return []
        return sorted(found)


@pytest.fixture
def world(tmp_path: Path, topics: Topics) -> Iterator[World]:
    make = [sys.executable, "-m", "venv", "--without-pip", "environment"]
    subprocess.run(make, cwd=tmp_path, check=True)
    fill_environment(tmp_path / "environment")
    subprocess.run(["tar", "-czf", "environment.tar.gz", "-C", "environment", "."], cwd=tmp_path, check=True)
    with running_object_store() as store, running_yarn(tmp_path / "yarn") as yarn:
        store.create_bucket("lake")
        told = {**PACKAGES_SETTINGS, **store.spark_settings, **SMALL}
        lines = [
            f"set {key} = '{value}';\n"
            for key, value in told.items()
            if not key.endswith((".access.key", ".secret.key"))
        ]
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "functions.py").write_text(FUNCTIONS)
        source, target = topics.create(partitions=2), topics.create()
        named = PIPELINE.replace("SOURCE", source).replace("TARGET", target)
        (tmp_path / "orders.sql").write_text("".join(lines) + named)
        yield World(tmp_path, yarn, store, topics, source, target)


def test_a_driver_in_a_container_is_killed_and_stopped_and_every_row_counts_once(world: World) -> None:
    world.produce(0, 100)
    with world.submitted() as submitting:

        def submission_lives() -> None:
            assert submitting.poll() is None, told_by(world)

        def wait_until_written(count: int) -> None:
            wait_for(lambda: len(world.records()) >= count and len(world.rows()) >= count, submission_lives)

        wait_until_written(100)
        (application,) = (each["id"] for each in world.yarn.applications())
        assert {row["state"] for row in status_of(world)} == {"running"}
        assert not [words for words in command_lines().values() if is_secret_in(" ".join(words))]

        world.yarn.kill_driver(application)
        world.produce(100, 200)
        wait_until_written(200)
        assert world.yarn.attempts(application) == 2, told_by(world)

        assert world.run("stop") == "pipeline orders stopped\n"
        assert submitting.wait(WAIT_S_MAX) == 0, told_by(world)
    (done,) = world.yarn.applications()
    assert (done["state"], done["finalStatus"]) == ("FINISHED", "SUCCEEDED")
    assert world.records() == world.rows() == list(range(200))
    assert not [name for name in world.store.names("lake", "checkpoints/orders/_moldau") if "lock-" in name]
    assert_no_secrets(world)


def test_a_driver_here_has_its_executors_there(world: World) -> None:
    for start in (0, 100):
        world.produce(start, start + 100)
        world.run("run", "--master", "yarn", "--once")
        assert world.records() == world.rows() == list(range(start + 100))
    assert [each["finalStatus"] for each in world.yarn.applications()] == ["SUCCEEDED", "SUCCEEDED"]
    assert {row["state"] for row in status_of(world)} == {"done"}
    assert_no_secrets(world)


def assert_no_secrets(world: World) -> None:
    assert not list(files_with_secrets(world.yarn.logs))
    assert not is_secret_in(json.dumps(world.yarn.ask("apps")))


def status_of(world: World) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(world.run("status", "-o", "json"))
    return rows


def is_secret_in(text: str) -> bool:
    return any(secret in text for secret in SECRETS.values())


def files_with_secrets(folder: Path) -> Iterator[Path]:
    """Logs of servers and containers, and the scripts that start those."""
    for path in folder.rglob("*"):
        if path.is_file() and is_secret_in(path.read_text(errors="replace")):
            yield path


def told_by(world: World) -> str:
    """What the submission wrote last, and what drivers did."""
    drivers = sorted(world.yarn.logs.rglob("container_*_000001/std*"))
    return "\n".join(path.read_text(errors="replace")[-4000:] for path in [world.folder / "submitted.txt", *drivers])


def wait_for(condition: Callable[[], bool], still: Callable[[], None]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not condition():
        still()
        assert time.monotonic() < deadline_s
        time.sleep(1)
