"""A consumer is sent to the replica in its rack that has come furthest, if the leader is elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.log.samples import NOW_MS, batch
from tests.replication.replicated import ALICE, BOB, LEADER, fetch, replicated

RACKS = {LEADER: "east", ALICE: "west", BOB: "west"}


@pytest.mark.parametrize(
    ("rack", "offset", "alice", "bob", "expected"),
    [
        ("west", 0, 4, 5, BOB),
        ("west", 0, 5, 4, ALICE),
        ("west", 5, 4, 5, BOB),  # only he has that offset
        ("west", 6, 4, 5, None),
        ("east", 0, 4, 5, None),  # where the leader is
        ("north", 0, 4, 5, None),
    ],
)
def test_who_is_nearest(tmp_path: Path, rack: str, offset: int, alice: int, bob: int, expected: int | None) -> None:
    partition = replicated(tmp_path)
    for _ in range(5):
        partition.append(batch([b"v"]), now_ms=NOW_MS)
    fetch(partition, ALICE, alice)
    fetch(partition, BOB, bob)
    assert partition.replicas is not None
    assert partition.replicas.nearest(rack, offset=offset, racks=RACKS) == expected


def test_a_replica_that_is_not_in_sync_is_nobodys(tmp_path: Path) -> None:
    partition = replicated(tmp_path, LEADER, BOB)
    fetch(partition, BOB, 0)
    fetch(partition, ALICE, 0)
    assert partition.replicas is not None
    assert partition.replicas.nearest("west", offset=0, racks=RACKS) == BOB
    assert partition.replicas.nearest("west", offset=0, racks={**RACKS, BOB: None}) is None
