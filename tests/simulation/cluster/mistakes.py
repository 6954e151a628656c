"""Deliberate mistakes, planted into the cluster from outside: a simulation that does not notice them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from moldau.controller.partitions import changes
from moldau.core.errors import ErrorCode
from moldau.log.producers.producer_state import ProducerStates
from moldau.node.storage import opening
from moldau.replication.follower import Follower
from moldau.replication.partition import Partition
from moldau.replication.replicas import Replicas

Plant = Callable[[pytest.MonkeyPatch], None]


def commit_without_followers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replicas, "high_watermark", lambda _self, end_offset, **_: end_offset)


def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "acknowledgement", lambda _self, _offset: ErrorCode.NONE)


def truncate_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """As Apache Kafka did before leader epochs (KIP-101)."""

    def begin(self: Follower, *, now_ms: int) -> None:
        self.partition.truncate_to(self.partition.high_watermark, now_ms=now_ms)

    patch.setattr(Follower, "begin", begin)


def elect_anybody(patch: pytest.MonkeyPatch) -> None:
    elect = changes._elect

    def blind(leader: int, replicas: Any, pool: Any, able: Any, offline: Any, **how: Any) -> int:
        return elect(leader, replicas, replicas, able, offline, **how)

    patch.setattr(changes, "_elect", blind)


def forget_sequences(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "is_repeated", lambda _self, _header: False)
    patch.setattr(ProducerStates, "check", lambda *_args, **_how: None)


def lead_on_after_a_start(patch: pytest.MonkeyPatch) -> None:
    """A process is what the image says of the one before it."""
    patch.setattr(opening, "without_leader", lambda image, _broker_id: image)


GONE = "is committed as|acknowledged as|was committed as|out of range|ends at"

# Each with a part of what must be said about it.
MISTAKES: Mapping[Plant, str] = MappingProxyType(
    {
        commit_without_followers: GONE,
        acknowledge_at_once: "was acknowledged as",
        truncate_to_the_high_watermark: GONE,
        elect_anybody: "may lack records",
        forget_sequences: "twice|out of order",
        lead_on_after_a_start: "is led by",
    }
)
