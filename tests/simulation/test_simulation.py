"""Both coordinators with their clients, from seeds: crashes between any two steps break no promise.

Long runs are `scripts/simulate --seeds N`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.simulation.mistakes import MISTAKES, Plant
from tests.simulation.running import simulate
from tests.simulation.world import Violation

PROJECT = Path(__file__).parents[2]
SEEDS, SEEDS_EACH = 40, 5
SEEDS_FOR_A_MISTAKE = 25


def simulate_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        simulate(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_EACH))
def test_crashes_break_no_promise(first: int) -> None:
    simulate_all(range(first, first + SEEDS_EACH))


@pytest.mark.parametrize(("plant", "complaint"), MISTAKES.items(), ids=[each.__name__ for each in MISTAKES])
def test_a_mistake_is_noticed(plant: Plant, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violation, match=complaint) as noticed:
        simulate_all(range(SEEDS_FOR_A_MISTAKE))
    assert "scripts/simulate --seed" in str(noticed.value)


def test_something_happens() -> None:
    """Else all promises would be kept."""
    worlds = [simulate(seed) for seed in range(4)]
    assert sum(world.crashes for world in worlds) > 10
    assert sum(len(world.attempted) for world in worlds) > 60
    assert all(attempted.values for world in worlds for attempted in world.attempted if attempted.asks_for_commit)


def test_a_seed_replays_in_another_process() -> None:
    """Also where sets are in another order, which Python decides anew in every process."""
    code = "from tests.simulation.running import simulate; print([simulate(seed).digest for seed in range(5)])"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=PROJECT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
