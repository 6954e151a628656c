"""What classic consumers say to each other, in all versions and when it is damaged."""

from __future__ import annotations

import pytest

from moldau.core.errors import ProtocolViolation
from moldau.groups.classic.consumer_protocol import (
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
)
from tests.groups.migration.worlds import subscription

PLAIN = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(("version", "owned"), [(0, []), (1, [0, 2]), (2, [0, 2]), (3, [0, 2])])
def test_a_subscription_is_read_in_every_version(version: int, owned: list[int]) -> None:
    read = read_subscription(subscription(0, 2, version=version))
    assert read.topics == ["orders"]
    assert read.owned_partitions == ([TopicPartitions("orders", owned)] if owned else [])


def test_a_version_of_the_future_is_read_as_far_as_it_is_known() -> None:
    assert read_subscription(b"\0\x09" + subscription(1)[2:] + b"more").topics == ["orders"]


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff" + PLAIN[2:], PLAIN[:-1], b"\0\1" + b"\x7f\xff\xff\xff", b"mine"]
)
def test_what_is_none(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        read_subscription(data)


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_an_assignment_is_written_in_the_members_own_version(version: int) -> None:
    given = write_assignment({"orders": [1, 3]}, version.to_bytes(2, "big") + PLAIN[2:])
    assert given[:2] == min(version, 3).to_bytes(2, "big")
    assert read_assignment(given).partitions == [TopicPartitions("orders", [1, 3])]
