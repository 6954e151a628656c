"""The live runs that a change takes: three brokers under load through faults of all kinds, on both stores.

Brokers with planted bugs are `scripts/faults-suite`, and many runs are `scripts/faults-many`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.faults.cluster.run import RESULT, Summary
from tests.faults.cluster.test_network import needs_namespaces
from tests.faults.cluster.test_runs import RUN_S_MAX, counts, faults

OPERATIONS_MIN = 20_000
FAULTS_MIN = 4
RUNS = (("sqlite", 1), ("sqlite", 2), ("sqlite", 3), ("zookeeper", 4), ("zookeeper", 5, "--secured"))
SECURED_RUNS = (("sqlite", 11), ("sqlite", 12), ("zookeeper", 13), ("zookeeper", 14), ("zookeeper", 15))


@needs_namespaces
@pytest.mark.timeout(RUN_S_MAX + 60)
@pytest.mark.xdist_group("faults")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: " ".join(map(str, run)))
def test_nothing_is_lost_in_a_minute_of_faults(tmp_path: Path, run: tuple[str, int, *tuple[str, ...]]) -> None:
    is_sound(tmp_path, *run)


@needs_namespaces
@pytest.mark.long
@pytest.mark.timeout(RUN_S_MAX + 60)
@pytest.mark.xdist_group("faults")
@pytest.mark.parametrize(("store", "seed"), SECURED_RUNS)
def test_nothing_is_lost_where_nobody_is_trusted(tmp_path: Path, store: str, seed: int) -> None:
    """TLS, SCRAM and ACLs for brokers and clients, TLS and a login to ZooKeeper."""
    is_sound(tmp_path, store, seed, "--secured")


def is_sound(directory: Path, store: str, seed: int, *more: str) -> None:
    wanted = ("--seconds", "60", "--seed", str(seed), "--store", store, "--session-timeout", "6", "--healed", "3")
    code, text = faults(directory, *wanted, *more)
    assert (code, counts(text)) == (0, {}), text
    summary = msgspec.json.decode((directory / RESULT).read_bytes(), type=Summary)
    assert len(summary.faults) >= FAULTS_MIN, f"too few faults struck: {summary.faults}"
    assert summary.operations >= OPERATIONS_MIN, text
