"""One Spark session for the whole run, and topics of a test's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.spark.workers import worker_python
from tests.spark.servers import home_of_its_own
from tests.spark.tables.postgresql import running_postgresql
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "MOLDAU_SPARK_MASTER"  # `scripts/spark-core` runs the same tests with separate executors


# Killed drivers, separate executors, whole pipelines: minutes on two cores. The usual run reads and writes topics.
LONG = (
    "exactly_once/test_kills.py",
    "pipelines/running/results/test_decisions.py",
    "pipelines/running/results/test_kept.py",
    "pipelines/running/joining/test_batches.py",
    "pipelines/running/test_runner.py",
    "pipelines/running/sessions/test_terminal.py",
    "pipelines/test_examples.py",
    "pipelines/test_tables.py",
    "sql/test_session.py",
    "tables/test_batch_writes.py",
    "tables/test_exactly_once.py",
    "tables/test_reading.py",
    "spark/test_apache_kafka.py",
    "spark/test_cluster.py",
    "spark/test_connect.py",
    "spark/test_formats_in_spark.py",
    "spark/test_from_zero.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that needs the session runs in one process: a second session would cost more than it brings on two cores."""
    for item in items:
        if any(item.path.match(name) for name in LONG):
            item.add_marker(pytest.mark.long)
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    # Workers run this interpreter, with this checkout on their path, whatever `python3` means elsewhere.
    os.environ["PYSPARK_PYTHON"] = worker_python()
    scratch, master = tmp_path_factory.mktemp("spark"), os.environ.get(MASTER, "local[2]")
    if master.startswith("local-cluster"):
        os.environ["SPARK_HOME"] = str(home_of_its_own(scratch))
    session = (
        SparkSession.builder.master(master)
        .appName("moldau-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with running_postgresql() as url:
        yield url


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    return Topics(bootstrap)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"
