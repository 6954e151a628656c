"""What is handed to spark-submit, and what is refused before."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

from moldau.cli.pipeline.command import parse, said
from moldau.cli.pipeline.submitting import PROGRAM, arguments
from moldau.spark.pipelines.loading import load
from tests.cli.conftest import Tool

PIPELINE = """\
set checkpoint = 's3a://lake/orders';
set spark.executor.memory = '2g';
include 'functions.py';
create stream orders from topic 'orders';
create sink copies into console as select * from orders;
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(
        "from moldau.spark.pipelines.building import Pipeline\npipeline = Pipeline('functions')\n"
    )
    path = tmp_path / "orders.sql"
    path.write_text(PIPELINE)
    return path


def test_files_and_settings_go_with_it(file: Path) -> None:
    master = "k8s://https://head:6443"
    words = ["run", str(file), "--master", master, "--deploy-mode", "cluster", "--set", "bootstrap.servers=kafka:9092"]
    options = parse(words)
    plan = load(file, said(options))
    assert arguments(plan, options, said(options)) == [
        *("--master", master, "--deploy-mode", "cluster", "--name", "moldau pipeline orders"),
        *("--conf", "spark.executor.memory=2g"),
        *("--files", f"{file},{file.parent / 'functions.py'}", str(PROGRAM)),
        *("run", "orders.sql", "--quiet", "--set", "bootstrap.servers=kafka:9092"),
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--master", "spark://head:7077"], "spark://head:7077 starts no drivers in Python, only yarn and k8s://… do"),
        ([], "no master starts no drivers in Python"),
        (["--master", "yarn", "--set", "checkpoint=kept"], "so checkpoint must be a URL"),
    ],
)
def test_what_can_not_be_is_refused(tool: Tool, file: Path, arguments: list[str], told: str) -> None:
    refused = tool("pipeline", "run", str(file), "--deploy-mode", "cluster", *arguments)
    assert refused.returncode != 0
    assert told in refused.stderr
