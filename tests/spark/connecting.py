"""A Spark Connect server in processes of its own, and a session that reaches it over the network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.apache_kafka import free_ports
from tests.spark.servers import home_of_its_own, spark_server, wait_for_port

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

HOST = "127.0.0.1"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(master: str, folder: Path) -> Iterator[str]:
    """Its URL."""
    (port,) = free_ports(1)
    home, output = home_of_its_own(folder), folder / "connect.txt"
    # The name of the class decides; the file that a submission must name is never opened.
    arguments = ["--master", master, "--class", SERVER, *_settings(port, folder), "spark-internal"]
    interpreter = {"PYSPARK_PYTHON": sys.executable}
    with spark_server("spark-submit", arguments, output=output, home=home, environment=interpreter) as process:
        wait_for_port(HOST, port, process, output=output)
        yield f"sc://{HOST}:{port}"


@contextmanager
def connected(url: str) -> Iterator[SparkSession]:
    from pyspark.sql.connect.session import SparkSession

    # A plain `SparkSession.builder.remote` refuses where this process has a session of the other kind as well.
    session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        session.stop()


def _settings(port: int, folder: Path) -> list[str]:
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
