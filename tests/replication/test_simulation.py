"""Whatever is lost, late or killed: what was acknowledged stays, and replicas end equal byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.ids import Offset
from moldau.log.partition_log import PartitionLog
from moldau.replication import follower
from moldau.replication.replicas import Replicas
from tests.replication.simulation import run

STEPS = 1_500


def run_several(folder: Path) -> None:
    for seed in range(12):
        run(folder / str(seed), seed, STEPS)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_acknowledged_stays_and_replicas_are_equal(tmp_path: Path, seed: int) -> None:
    cluster = run(tmp_path, seed, STEPS)
    assert len(cluster.acknowledged) > 10
    assert cluster.elections > 2


def test_the_seeds_see_truncations(tmp_path: Path) -> None:
    assert sum(run(tmp_path / str(seed), seed, STEPS).truncations for seed in range(3)) > 0


def test_a_follower_that_never_truncates_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(log: PartitionLog, _: object) -> Offset:
        return log.end_offset

    monkeypatch.setattr(follower, "truncation_offset", nowhere)
    with pytest.raises(AssertionError):
        run_several(tmp_path)


def test_a_leader_that_waits_for_nobody_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replicas, "high_watermark", lambda _self, end_offset, **_: end_offset)
    with pytest.raises(AssertionError):
        run_several(tmp_path)
