"""Moves between the log directories of one broker, and throttles that come and go with them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from moldau.cli.main import main
from tests.faults.clients import create_topic

PARTITIONS = 2
MOVED_S_MAX = 30.0


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp(name) for name in ("first", "second")]


@pytest.fixture(scope="module")
def bootstrap(folders: list[Path]) -> Iterator[str]:
    with moldau.run(data_dir=folders[0], overrides={"log.dirs": ",".join(map(str, folders))}) as broker:
        create_topic(broker.bootstrap_servers, "orders", partitions=PARTITIONS)
        yield broker.bootstrap_servers


def plan(folder: Path, tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    rows = [
        {"topic": "orders", "partition": each, "replicas": [0], "log_dirs": [str(folder)]} for each in range(PARTITIONS)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(path)


def test_replicas_move_to_another_directory(
    bootstrap: str, folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in folders:
        words = [
            "reassign-partitions",
            "--bootstrap-server",
            bootstrap,
            "--reassignment-json-file",
            plan(folder, tmp_path),
        ]
        assert main([*words, "--execute", "--replica-alter-log-dirs-throttle", "100000000"]) == 0
        told = capsys.readouterr().out.splitlines()
        assert told[-4:] == [
            "The replica-alter-dir throttle limit was set to 100000000 B/s",
            "Successfully started partition reassignments for orders-0,orders-1",
            *(
                f"Successfully started moving log directory to {folder} for replica orders-{each} with broker 0 "
                for each in range(PARTITIONS)
            ),
        ]
        deadline_s = time.monotonic() + MOVED_S_MAX
        # A move that waits for another is told of as well.
        while (out := verified(words, capsys)).count("completed successfully") < PARTITIONS:
            assert time.monotonic() < deadline_s, out
        assert out.splitlines() == [
            "Status of partition reassignment:",
            "Reassignment of partition orders-0 is completed.",
            "Reassignment of partition orders-1 is completed.",
            "Reassignment of replica orders-0-0 completed successfully.",
            "Reassignment of replica orders-1-0 completed successfully.",
            "Clearing broker-level throttles on broker 0",
            "Clearing topic-level throttles on topic orders",
        ]


def verified(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words, "--verify"]) == 0
    return capsys.readouterr().out


def test_a_directory_that_the_broker_does_not_have(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reassign-partitions", "--bootstrap-server", bootstrap]
    file = ["--reassignment-json-file", plan(tmp_path / "nowhere", tmp_path)]
    assert main([*words, *file, "--execute"]) == 1
    told = "Failed to alter dir for orders-0-0: The user-specified log directory is not found in the broker config."
    assert capsys.readouterr().err == f"moldau reassign-partitions: {told}\n"


def test_where_replicas_are_is_proposed_and_printed(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": [{"topic": "orders"}]}))
    words = ["reassign-partitions", "--bootstrap-server", bootstrap, "--generate", "--broker-list", "0"]
    assert main([*words, "--topics-to-move-json-file", str(path)]) == 0
    current, proposed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [each["replicas"] for each in current["partitions"]] == [[0], [0]]
    assert [each["log_dirs"] for each in proposed["partitions"]] == [["any"], ["any"]]
