"""Scripts that are written, run, and not written over those of others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.cli.shell_scripts import CLASSES, kafka_tools, scripts
from moldau.cli.tools import TOOLS
from tests.cli.conftest import RUN_S_MAX, Tool, environment


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    written = tmp_path / "bin"
    assert main(["shell-scripts", str(written)]) == 0
    assert capsys.readouterr().out == f"wrote {len(scripts())} scripts; to use them: export PATH={written}:$PATH\n"
    return written


def run(folder: Path, bootstrap: str, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(folder / name), *arguments],
        env=environment(bootstrap),
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


def test_there_is_one_for_every_tool_with_kafkas_options(folder: Path) -> None:
    written = {each.name for each in folder.iterdir()}
    assert {f"kafka-{name}.sh" for name, tool in TOOLS.items() if tool.kafka is not None} < written
    assert "kafka-run-class.sh" in written


def test_a_script_runs_its_tool(folder: Path, bootstrap: str, tool: Tool) -> None:
    done = run(folder, bootstrap, "kafka-cluster.sh", "cluster-id")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == tool("cluster", "cluster-id").stdout


@pytest.mark.parametrize("name", ["org.apache.kafka.tools.LogDirsCommand", "kafka.admin.LogDirsCommand"])
def test_a_class_runs_its_tool(folder: Path, bootstrap: str, name: str) -> None:
    done = run(folder, bootstrap, "kafka-run-class.sh", "-name", "dirs", "-loggc", name, "--describe")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Querying brokers for log directories information\n")


def test_the_help_of_a_script_is_of_its_options(folder: Path, bootstrap: str) -> None:
    """Not of the actions that our tool of the same name has."""
    for words in (("kafka-topics.sh",), ("kafka-run-class.sh", "kafka.admin.TopicCommand")):
        done = run(folder, bootstrap, *words, "--help")
        assert (done.returncode, "--partition-size-limit-per-response" in done.stdout) == (0, True)


def test_a_class_that_nobody_knows(folder: Path, bootstrap: str) -> None:
    done = run(folder, bootstrap, "kafka-run-class.sh", "kafka.tools.None")
    told = "moldau has no tool for the class kafka.tools.None; see: moldau help\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_the_old_election_takes_all_partitions(folder: Path, bootstrap: str) -> None:
    done = run(folder, bootstrap, "kafka-preferred-replica-election.sh")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_others_wrote_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "kafka-acls.sh").write_text("#!/bin/sh\nexec their-own\n")
    (folder / "kafka-cluster.sh").unlink()
    assert main(["shell-scripts", str(folder)]) == 1
    told = "kafka-acls.sh is there and was not written by this command; nothing is written\n"
    assert capsys.readouterr().err == f"moldau shell-scripts: {folder}/{told}"
    assert not (folder / "kafka-cluster.sh").exists()


def test_what_it_wrote_is_written_anew(folder: Path) -> None:
    path = folder / "kafka-acls.sh"
    path.write_text(path.read_text() + "# more\n")
    assert main(["shell-scripts", str(folder)]) == 0
    assert "# more" not in path.read_text()


def test_every_tool_has_its_classes() -> None:
    assert set(kafka_tools()) <= CLASSES.keys()
