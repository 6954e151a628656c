"""A few cases of the matrix, one of each kind; `scripts/fault-matrix` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.matrix import Case, live

IN_A_PARTITION = "/*-[0-9]*"
CASES = [
    Case("start", "/meta.properties.tmp", "fsync", "EIO"),
    Case("run", f"{IN_A_PARTITION}/*.log", "write", "ENOSPC", 12),
    Case("run", f"{IN_A_PARTITION}/*.log", "fsync", "EIO", 3),
    Case("run", f"{IN_A_PARTITION}/*.txnindex", "write", "EIO"),
    Case("run", f"{IN_A_PARTITION}/*.timeindex", "open", "EMFILE", 20),
    Case("run", f"{IN_A_PARTITION}/*.log.swap", "rename", "EIO"),
    Case("run", "/moldau-metadata.db-wal", "write", "ENOSPC", lasting=True),
    Case("stop", "/.kafka_cleanshutdown.tmp", "write", "ENOSPC"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fault_costs_nothing_that_was_acknowledged(tmp_path: Path, case: Case) -> None:
    life, _ = live(tmp_path / "life", case, kill=case.phase == "run")
    assert life.struck, "the broker never made that call"
