"""Assignments as classic members hand them around."""

from __future__ import annotations

from moldau.client.groups.assignments import assigned
from moldau.core.ids import TopicPartition
from moldau.groups.classic.consumer_protocol import Subscription, write_assignment
from moldau.wire.codec import encode


def test_every_version_is_read() -> None:
    for version in range(4):
        subscription = version.to_bytes(2, "big") + encode(Subscription(["orders"]), version)
        data = write_assignment({"returns": [0], "orders": [2, 0]}, subscription)
        orders = [TopicPartition("orders", 0), TopicPartition("orders", 2)]
        assert assigned(data) == (*orders, TopicPartition("returns", 0))
        newer = (9).to_bytes(2, "big") + data[2:]
        assert assigned(newer + b"more") == assigned(data)


def test_nothing_and_nonsense_are_no_partitions() -> None:
    assert assigned(b"") == ()
    assert assigned(b"\x00") == ()
    assert assigned(b"\x00\x00\x7f\xff\xff\xff") == ()
