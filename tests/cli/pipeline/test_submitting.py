"""What is handed to spark-submit, and what is refused before."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="scripts/test-broker installs nothing of Spark")

from moldau.cli.failures import CommandFailed
from moldau.cli.main import main
from moldau.cli.pipeline.acting import said
from moldau.cli.pipeline.command import parse
from moldau.cli.pipeline.handover import SETTING, HandedOver, as_properties, lay_out
from moldau.cli.pipeline.submitting import PROGRAM, arguments, places_of, spark_settings
from moldau.spark.pipelines.loading import files_of, load

PROPERTIES = Path("/private/spark.properties")
PLACES = {"orders.sql": "orders.sql", "functions.py": "functions.py"}
PIPELINE = """\
set checkpoint = 's3a://lake/orders';
set spark.executor.memory = '2g';
include 'functions.py';
create stream orders from topic 'orders';
create sink copies into console as select * from orders;
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path = tmp_path / "shop"
    tmp_path.mkdir()
    (tmp_path / "functions.py").write_text(
        "from moldau.spark.pipelines.building import Pipeline\npipeline = Pipeline('functions')\n"
    )
    path = tmp_path / "orders.sql"
    path.write_text(PIPELINE)
    return path


def test_the_files_go_with_it_and_no_setting_is_on_the_command_line(file: Path) -> None:
    master = "k8s://https://head:6443"
    words = ["run", str(file), "--master", master, "--deploy-mode", "cluster", "--set", "bootstrap.servers=kafka:9092"]
    options = parse(words)
    plan = load(file, said(options))
    assert arguments(plan, options, PROPERTIES) == [
        *("--master", master, "--deploy-mode", "cluster", "--name", "moldau pipeline orders"),
        *("--properties-file", str(PROPERTIES), "--load-spark-defaults"),
        *("--files", f"{file},{file.parent / 'functions.py'}", str(PROGRAM)),
        *("run", "orders.sql", "--quiet"),
    ]
    assert spark_settings(plan, options, said(options)) == {
        "spark.executor.memory": "2g",
        "spark.kubernetes.file.upload.path": "s3a://lake/orders/_moldau/uploads",
        "spark.log.level": "WARN",
        SETTING: HandedOver({"bootstrap.servers": "kafka:9092"}, {}, PLACES).text(),
    }


def test_variables_that_the_file_refers_to_are_handed_over(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PASSWORD": "hunter2", "STORE_KEY": "swordfish", "OTHER": "nobody's business"}.items():
        monkeypatch.setenv(name, value)
    file.write_text(
        PIPELINE.replace("topic 'orders'", "topic 'orders' with (kafka.sasl.password = '${env:PASSWORD}')")
        + "set spark.hadoop.fs.s3a.secret.key = '${env:STORE_KEY}';\n"
    )
    options = parse(["run", str(file), "--master", "yarn", "--deploy-mode", "cluster"])
    settings = spark_settings(load(file), options, {})
    environment = {"PASSWORD": "hunter2", "STORE_KEY": "swordfish"}
    assert HandedOver.of(settings[SETTING]) == HandedOver({}, environment, PLACES)


def test_an_included_file_is_put_where_the_pipeline_looks_for_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.parent / "more").mkdir()
    (file.parent / "functions.py").rename(file.parent / "more" / "functions.py")
    file.write_text(PIPELINE.replace("'functions.py'", "'more/functions.py'"))
    options = parse(["run", str(file), "--master", "yarn", "--deploy-mode", "cluster"])
    handed = HandedOver.of(spark_settings(load(file), options, {})[SETTING])
    container = tmp_path / "container"
    container.mkdir()
    for sent in files_of(file):
        (container / sent.name).symlink_to(sent)  # as YARN does, from its cache
    monkeypatch.chdir(container)
    lay_out(handed)
    assert load(Path(file.name)).name == "orders"
    assert Path(file.name).resolve().parent == container, "what the driver keeps beside the file is the container's"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("../functions.py",), "only files beside it or below can be included"),
        (("functions.py", "more/functions.py"), "included files need names of their own, not "),
    ],
)
def test_files_that_can_not_go_with_it_are_refused(file: Path, names: tuple[str, ...], told: str) -> None:
    for name in names:
        (file.parent / name).parent.mkdir(exist_ok=True)
        shutil.copy(file.parent / "functions.py", file.parent / "copy")
        (file.parent / "copy").replace(file.parent / name)
    file.write_text("\n".join(f"include '{name}';" for name in names))
    with pytest.raises(CommandFailed, match=told):
        places_of(file)


@pytest.mark.parametrize(("master", "handed"), [("yarn", {"spark.archives": ""}), ("k8s://https://head:6443", {})])
def test_a_driver_does_not_look_for_what_yarn_has_brought(file: Path, master: str, handed: dict[str, str]) -> None:
    options = parse(["run", str(file), "--master", master, "--deploy-mode", "cluster"])
    settings = spark_settings(load(file, {"spark.archives": "environment.tar.gz#environment"}), options, {})
    assert settings["spark.archives"] == "environment.tar.gz#environment"
    assert HandedOver.of(settings[SETTING]).settings == handed


@pytest.mark.parametrize(("once", "hours"), [(["--once"], None), ([], "1h")])
def test_deaths_of_long_ago_do_not_end_a_pipeline_that_stays(file: Path, once: list[str], hours: str | None) -> None:
    options = parse(["run", str(file), "--master", "yarn", "--deploy-mode", "cluster", *once])
    settings = spark_settings(load(file), options, {})
    assert settings.get("spark.yarn.am.attemptFailuresValidityInterval") == hours


@pytest.mark.parametrize(
    "value", ["plain", " two  words ", "a\\b=c:d#e!f", "two\nlines\ttab", '{"ž": "\U0001f600"}', ""]
)
def test_a_value_arrives_as_it_was_written(value: str) -> None:
    """Java's rules for a properties file, read by hand: escapes of four digits, and `=` between key and value."""
    (line,) = as_properties({"spark.some key": value}).splitlines()
    key, _, written = line.partition("=")
    assert (read(key), read(written)) == ("spark.some key", value)


def read(text: str) -> str:
    units = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    assert not re.search(r"[\s=:#!\\]", text.replace("\\u", ""))
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def test_who_looks_on_is_told_there(file: Path) -> None:
    words = ["run", str(file), "--master", "yarn", "--deploy-mode", "cluster", "--once", "--metrics-port", "9400"]
    options = parse([*words, "--metrics-host", "0.0.0.0", "--lineage", "http://marquez:5000", "--restarts", "3"])
    handed = arguments(load(file, said(options)), options, PROPERTIES)
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


def test_spark_submit_gets_a_file_that_nobody_else_reads_and_that_goes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "spark-submit"
    program.write_text('#!/bin/sh\nstat -c "%a %n" "$(dirname "$8")" "$8"; grep -c hunter2 "$8"; exit 7\n')
    program.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(home))
    there = ("--master", "yarn", "--deploy-mode", "cluster", "--set", "kafka.sasl.password=hunter2")
    assert main(["pipeline", "run", str(file), *there]) == 7
    folder, properties, count = capfd.readouterr().out.splitlines()
    assert (folder[:4], properties[:4], count) == ("700 ", "600 ", "1")
    assert not Path(folder[4:]).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_who_ends_the_command_ends_spark_submit_and_the_file_goes(file: Path, tmp_path: Path, number: int) -> None:
    """A terminal that is closed is such an end: on YARN the command waits as long as the pipeline runs."""
    home, scratch = tmp_path / "spark", tmp_path / "scratch"
    (home / "bin").mkdir(parents=True)
    scratch.mkdir()
    program = home / "bin" / "spark-submit"
    program.write_text('#!/bin/sh\necho $$ "$8"\nexec sleep 60\n')
    program.chmod(0o755)
    # Whoever runs the tests in the background, or by nohup, has two of these signals ignored.
    command = [
        "env",
        "--default-signal=HUP,INT",
        sys.executable,
        "-m",
        "moldau",
        "pipeline",
        "run",
        str(file),
        "--master",
        "yarn",
    ]
    command += ["--deploy-mode", "cluster", "--set", "kafka.sasl.password=hunter2"]
    environment = {**os.environ, "SPARK_HOME": str(home), "TMPDIR": str(scratch)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child, properties = process.stdout.readline().split()
        assert "hunter2" in Path(properties).read_text()
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(child), 0)
