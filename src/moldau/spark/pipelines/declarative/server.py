"""The Spark Connect server that projects run on: one of ours, which is kept between updates, or a far one."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.declarative.project import Project
from moldau.spark.pipelines.running.sessions.opening import open_session
from moldau.spark.storage import Folder, OutOfReach, folder_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as ClassicSession
    from pyspark.sql.connect.session import SparkSession

CONNECT = "sc://"
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
SERVER_SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "localhost",
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
}
# The reason of a failure is told in one line; the stack of the JVM is in its log.
SESSION_SETTINGS = {"spark.sql.connect.serverStacktrace.enabled": "false"}


class ConnectServer:
    def __init__(self, url: str, spark: ClassicSession | None = None) -> None:
        """`spark` is the session that a server of ours lives in: its JVM lives and dies with this process."""
        self.url = url
        self._spark = spark
        self._jvm: Any = spark.sparkContext._gateway.proc if spark is not None else None  # type: ignore[union-attr]

    @property
    def has_died(self) -> bool:
        return self._jvm is not None and self._jvm.poll() is not None

    def folder(self, url: str) -> Folder:
        """As Spark reaches it. Raises OutOfReach for a server that is not ours."""
        if self._spark is None:
            raise OutOfReach(f"{url}: over Spark Connect only the server reaches it")
        return folder_of(url, self._spark)

    @contextmanager
    def session(self, configuration: Mapping[str, str]) -> Iterator[SparkSession]:
        """A session of its own for each update: nothing that one leaves behind is there for the next."""
        from pyspark.sql.connect.session import SparkSession

        builder = SparkSession.builder.remote(self.url)
        for key, value in {**SESSION_SETTINGS, **configuration}.items():
            builder = builder.config(key, value)
        with warnings.catch_warnings():
            # What only a server can be started with is set there already, or is the far server's own affair.
            warnings.simplefilter("ignore")
            session = builder.create()
        try:
            yield session
        finally:
            session.stop()


def open_server(
    project: Project, configuration: Mapping[str, str], master: str | None, *, keeps_tables: bool = True
) -> ConnectServer:
    """Raises NoSpark. One process at a time can have the project's tables; to look at definitions needs none."""
    if master is not None and master.startswith(CONNECT):
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        return ConnectServer(master)
    # Nobody else on this machine may run queries there. Spark takes the token from the environment.
    os.environ.setdefault(TOKEN, str(uuid.uuid4()))
    # Tables are where `spark-pipelines run` has them when it is run in the project's folder.
    warehouse = {"spark.sql.warehouse.dir": str(project.folder / "spark-warehouse")}
    settings = {**warehouse, **(_catalog(project) if keeps_tables else {}), **configuration, **SERVER_SETTINGS}
    spark = open_session(f"moldau pipeline {project.name}", master, settings, log=project.home / "spark.log")
    context: Any = spark.sparkContext
    service = getattr(context._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    port = getattr(service, "MODULE$").localPort()
    # From here on the functions of PySpark make what Connect understands.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    return ConnectServer(f"{CONNECT}localhost:{port}", spark)


def _catalog(project: Project) -> dict[str, str]:
    """A catalog that stays.

    Spark's default catalog is gone with the process, while the tables' files are still there: the second run of a
    project would fail with LOCATION_ALREADY_EXISTS.
    """
    catalog = f"jdbc:derby:;databaseName={project.home / 'catalog'};create=true"
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": catalog,
        "spark.driver.defaultJavaOptions": f'"-Dderby.stream.error.file={project.home / "derby.log"}"',
    }
