"""The table of many runs: one line each, their sums, and what is kept of those that passed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.faults.cluster.many import Wanted, drop_all_but_reports, one, table
from tests.faults.cluster.run import RESULT, Summary


def test_sums_and_failures_are_told(tmp_path: Path) -> None:
    wanted = [Wanted(store, 7, tmp_path) for store in ("sqlite", "zookeeper", "sqlite")]
    passed = Summary(True, {1: 0, 2: 0}, 30_000, 20_000, 70.0, ["kill -9", "SIGSTOP"])
    failed = Summary(False, {1: 0, 2: 3}, 100, 50, 70.0, ["kill -9"], ["never in sync again"])
    lines = [line.split() for line in table(wanted, [passed, failed, None]).splitlines()]
    assert lines[1] == ["sqlite", "7", "2", "30000", "20000", *["0"] * 12, "yes"]
    assert lines[2] == ["zookeeper", "7", "1", "100", "50", "0", "3", *["0"] * 10, "NO"]
    assert lines[3] == ["sqlite", "7", "came", "to", "no", "judgement"]
    assert lines[4] == ["all", "3", "3", "30100", "20050", "0", "3", *["0"] * 10, "1"]
    assert lines[5] == ["zookeeper-7:", "never", "in", "sync", "again"]


def test_a_run_that_has_its_result_is_not_run_again(tmp_path: Path) -> None:
    wanted, known = Wanted("sqlite", 3, tmp_path), Summary(True, {1: 0}, 5, 4)
    wanted.home.mkdir()
    (wanted.home / RESULT).write_bytes(msgspec.json.encode(known))
    assert one(wanted, ["--no-such-option"], 1) == known


def test_reports_are_kept(tmp_path: Path) -> None:
    (tmp_path / "b1").mkdir()
    for name in ("b1/output.txt", "c1.jsonl", RESULT, "report.txt"):
        (tmp_path / name).touch()
    drop_all_but_reports(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.txt", RESULT]
