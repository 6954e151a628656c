"""Which losses may come together: those that a cluster has to heal from by itself."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.simulation.cluster.disk import Disk
from tests.simulation.cluster.faults import may_lose_disk, may_lose_power
from tests.simulation.cluster.world import Machine


@pytest.fixture
def machines(tmp_path: Path) -> list[Machine]:
    return [Machine(each, Disk(tmp_path / str(each), Random(0))) for each in (1, 2, 3)]


def test_one_broker_at_a_time_loses_records(machines: list[Machine]) -> None:
    first, second, _ = machines
    first.lost_power = True
    assert not may_lose_power(second, machines, syncs_each=False)
    assert may_lose_power(first, machines, syncs_each=False)
    assert may_lose_disk(first, machines)


def test_all_may_lose_power_that_sync_what_they_acknowledge(machines: list[Machine]) -> None:
    first, second, third = machines
    first.lost_power = second.lost_power = True
    assert may_lose_power(third, machines, syncs_each=True)


def test_no_disk_is_lost_with_the_power_of_another_broker(machines: list[Machine]) -> None:
    """The controller trusts neither of them, so that perhaps nobody can be elected."""
    first, second, _ = machines
    first.lost_power = True
    assert not may_lose_disk(second, machines)
    first.lost_power, first.lost_disk = False, True
    assert not may_lose_power(second, machines, syncs_each=True)
