"""A whole cluster from seeds: whatever befalls it, what was acknowledged is there, and it heals.

Long runs are `scripts/simulate cluster --seeds N`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.simulation.cluster.mistakes import MISTAKES, Plant
from tests.simulation.cluster.running import simulate
from tests.simulation.cluster.world import Violation

PROJECT = Path(__file__).parents[3]
SEEDS, SEEDS_EACH = 200, 10
SEEDS_FOR_A_MISTAKE = 60
FAILED_ONCE = (16, 105, 390, 992, 1082, 1411, 2041, 3201, 4905, 10027)


def simulate_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        simulate(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_EACH))
def test_what_was_acknowledged_is_there_and_all_heals(first: int) -> None:
    simulate_all(range(first, first + SEEDS_EACH))


def test_what_failed_once_does_not_again() -> None:
    simulate_all(FAILED_ONCE)


@pytest.mark.parametrize(("plant", "complaint"), MISTAKES.items(), ids=[each.__name__ for each in MISTAKES])
def test_a_mistake_is_noticed(plant: Plant, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violation, match=complaint) as noticed:
        simulate_all(range(SEEDS_FOR_A_MISTAKE))
    assert "scripts/simulate cluster --seed" in str(noticed.value)


def test_something_happens() -> None:
    """Else all promises would be kept."""
    worlds = [simulate(seed) for seed in range(5)]
    assert sum(world.faults.count for world in worlds) > 15
    assert sum(world.history.elections for world in worlds) > 3
    assert sum(len(world.history.acknowledged) for world in worlds) > 150


def test_a_seed_replays_in_another_process() -> None:
    """Also where sets are in another order, which Python decides anew in every process."""
    imported = "from tests.simulation.cluster.running import simulate"
    code = f"{imported}; print([simulate(each).history.digest for each in range(8)])"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=PROJECT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
