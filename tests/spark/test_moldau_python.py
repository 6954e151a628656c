"""The script that starts Spark's workers: archives of what is installed beside it are taken off their path."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.brokers import PROJECT


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("HERE/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip:/job", "/job"),
        ("/local/container_1_0001_01_000001/pyspark.zip:/local/container_1_0001_01_000001/py4j-0.10.9.9-src.zip", ""),
        (
            "/local/container_1_0001_01_000001/functions.zip:/job",
            "/local/container_1_0001_01_000001/functions.zip:/job",
        ),
        ("/opt/spark/python/lib/pyspark.zip", "/opt/spark/python/lib/pyspark.zip"),
        ("", ""),
    ],
)
def test_what_is_installed_goes_before_archives_of_the_same(tmp_path: Path, given: str, kept: str) -> None:
    (tmp_path / "lib" / "python3.11" / "site-packages" / "pyspark").mkdir(parents=True)
    assert started(tmp_path, given) == f"{kept} -m worker\n"


def test_an_environment_without_pyspark_has_that_of_the_cluster(tmp_path: Path) -> None:
    given = "/local/container_1_0001_01_000001/pyspark.zip:/local/container_1_0001_01_000001/py4j-0.10.9.9-src.zip"
    assert started(tmp_path, given) == f"{given} -m worker\n"


def started(tmp_path: Path, given: str) -> str:
    """What Python is started with."""
    (tmp_path / "bin").mkdir()
    script = shutil.copy(PROJECT / "src" / "moldau" / "spark" / "moldau-python", tmp_path / "bin")
    (tmp_path / "bin" / "python3").write_text('#!/bin/sh\necho "$PYTHONPATH $*"\n')
    (tmp_path / "bin" / "python3").chmod(0o755)
    environment = {"PYTHONPATH": given.replace("HERE", str(tmp_path)), "PATH": "/usr/bin:/bin"}
    command = [script, "-m", "worker"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
