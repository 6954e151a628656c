"""What is handed to spark-submit, and what is refused before."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

from moldau.cli.main import main
from moldau.cli.pipeline.command import parse, said
from moldau.cli.pipeline.submitting import PROGRAM, arguments
from moldau.spark.pipelines.loading import load

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
        *("--conf", "spark.kubernetes.file.upload.path=s3a://lake/orders/_moldau/uploads"),
        *("--files", f"{file},{file.parent / 'functions.py'}", str(PROGRAM)),
        *("run", "orders.sql", "--quiet", "--set", "bootstrap.servers=kafka:9092"),
    ]


def test_who_looks_on_is_told_there(file: Path) -> None:
    words = ["run", str(file), "--master", "yarn", "--deploy-mode", "cluster", "--once", "--metrics-port", "9400"]
    options = parse([*words, "--metrics-host", "0.0.0.0", "--lineage", "http://marquez:5000", "--restarts", "3"])
    handed = arguments(load(file, said(options)), options, {})
    looking = ["--lineage", "http://marquez:5000", "--metrics-port", "9400", "--metrics-host", "0.0.0.0"]
    assert handed[handed.index(str(PROGRAM)) + 1 :] == [
        *("run", "orders.sql", "--once", "--quiet", "--restarts", "3"),
        *looking,
    ]
    assert not any("kubernetes" in word for word in handed)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--master", "spark://head:7077"], "spark://head:7077 starts no drivers in Python, only yarn and k8s://… do"),
        (["--master", "sc://head:15002"], "sc://head:15002 starts no drivers in Python"),
        (["--master", "local[2]"], "local[2] starts no drivers in Python"),
        ([], "no master starts no drivers in Python"),
        (["--master", "yarn", "--set", "checkpoint=kept"], "so checkpoint must be a URL"),
        (["--master", "yarn", "--set", "checkpoint=file:///kept"], "so checkpoint must be a URL that stays"),
        (["--master", "yarn", "--set", "state=kept"], "so state must be a URL"),
    ],
)
def test_what_can_not_be_is_refused(
    file: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "run", str(file), "--deploy-mode", "cluster", *arguments]) != 0
    assert told in capsys.readouterr().err


def test_a_replay_runs_where_it_is_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = ("--master", "yarn", "--deploy-mode", "cluster")
    assert main(["pipeline", "replay", str(file), "--from", "-2h", "--yes", *there]) != 0
    assert "--deploy-mode cluster: a replay is asked for where it runs" in capsys.readouterr().err


def test_a_project_runs_where_its_definitions_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spark-pipeline.yml"
    file.write_text("name: shop\nstorage: file:///tmp/shop\nlibraries: []\n")
    assert main(["pipeline", "run", str(file), "--master", "yarn", "--deploy-mode", "cluster"]) != 0
    assert "--deploy-mode cluster: a project's driver runs here" in capsys.readouterr().err
