"""Where the topic ends, while its leader is only learning of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client.cluster import Cluster, Refused
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.registry.storing.reading import end_of

PLACE = TopicPartition("_schemas", 0)


def asked(monkeypatch: pytest.MonkeyPatch, *codes: ErrorCode) -> int:
    answers: Iterator[Any] = iter([*(({}, {PLACE: code}) for code in codes), ({PLACE: 7}, {})])
    monkeypatch.setattr("moldau.registry.storing.reading.offsets_at", lambda *_: next(answers))
    return end_of(Cluster("localhost:1", client_id="test", timeout_s=20.0), PLACE)


def test_a_topic_that_was_just_made_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE) == 7


def test_what_does_not_pass_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused):
        asked(monkeypatch, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
