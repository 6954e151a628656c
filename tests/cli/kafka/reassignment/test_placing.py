"""Proposals are spread over brokers and racks, wherever they begin."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from moldau.cli.failures import CommandFailed
from moldau.cli.kafka.reassignment.placing import alternating, place

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("racks", [dict.fromkeys(range(5)), RACKS])
def test_leaders_and_replicas_are_spread_evenly(seed: int, racks: dict[int, str | None]) -> None:
    placed = place(len(racks) * 4, 3, racks, random.Random(seed))
    assert set(Counter(each[0] for each in placed).values()) == {4}
    assert all(len(set(each)) == 3 for each in placed)
    counts = Counter(broker_id for each in placed for broker_id in each)
    assert max(counts.values()) - min(counts.values()) <= 4


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_in_as_many_racks_as_there_are(seed: int) -> None:
    for factor in range(1, 7):
        for replicas in place(12, factor, RACKS, random.Random(seed)):
            assert len({RACKS[each] for each in replicas}) == min(factor, 3)


def test_neighbours_are_in_different_racks() -> None:
    assert alternating(RACKS) == [1, 3, 5, 2, 4, 6]


def test_more_replicas_than_brokers() -> None:
    with pytest.raises(CommandFailed, match="replication factor of 3 cannot be reached because only 2 broker"):
        place(1, 3, {1: None, 2: None}, random.Random(0))
