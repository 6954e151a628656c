"""What can be used of an API that is older, newer, missing or unknown."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.broker_api_versions import KNOWN, api_line, shown
from moldau.wire.api import ApiKey


@pytest.mark.parametrize(
    ("key", "answered", "told"),
    [
        (0, (0, 13), "Produce(0): 0 to 13 [usable: 13]"),
        (0, (3, 5), "Produce(0): 3 to 5 [usable: 5]"),
        (0, (0, 2), "Produce(0): 0 to 2 [unusable: node too old]"),
        (0, (14, 15), "Produce(0): 14 to 15 [unusable: node too new]"),
        (46, (0, 0), "ListPartitionReassignments(46): 0 [usable: 0]"),
        (86, None, "DeleteShareGroupState(86): UNSUPPORTED"),
        (4711, (0, 1), "UNKNOWN(4711): 0 to 1"),
    ],
)
def test_a_line(key: int, answered: tuple[int, int] | None, told: str) -> None:
    assert api_line(key, answered) == told


def test_every_api_is_known() -> None:
    assert len(KNOWN) == max(ApiKey) + 1


def test_apis_among_brokers_are_shown_only_where_they_are_answered() -> None:
    assert "\tVote(" not in shown({})
    assert "Vote(52): 0 to 2 [usable: 2]" in shown({52: (0, 2)})
