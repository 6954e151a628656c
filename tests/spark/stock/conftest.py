"""One session of the stock connector for all its tests, which run only where `scripts/spark-stock` asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.stock.environment import CONNECTOR, stock_python
from tests.spark.stock.running import JobRunner, running_jobs

HERE = Path(__file__).parent
ASKED_FOR = "MOLDAU_SPARK_STOCK"


@pytest.fixture(scope="session")
def stock() -> Iterator[JobRunner]:
    if ASKED_FOR not in os.environ:
        pytest.skip("the stock connector is half a gigabyte of downloads: scripts/spark-stock runs these")
    python = stock_python()
    # The project's own environment must not reach into this one's workers.
    environment = {"PYSPARK_PYTHON": python, "PYTHONPATH": ""}
    with running_jobs([python, str(HERE / "jobs.py"), CONNECTOR], environment=environment) as runner:
        yield runner
