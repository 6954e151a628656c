from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.pipelines.pipelines import Pipelines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def pipelines(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Pipelines:
    return Pipelines(spark, bootstrap, tmp_path)
