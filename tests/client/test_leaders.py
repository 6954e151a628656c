"""Questions to leaders, while a topic comes or goes: answers of a cluster that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moldau.client.leaders import Answer, Answers, ask_leaders
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

PLACE = TopicPartition("orders", 0)
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class FakeCluster:
    """Broker 1 leads as often as it is asked who does, and then nobody."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.timeout_s = 20.0

    def led(
        self, places: Sequence[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, int]]:
        self.times -= 1
        return ({1: [*places]}, {}) if self.times >= 0 else ({}, dict.fromkeys(places, int(UNKNOWN)))


@pytest.mark.parametrize(
    ("led", "codes", "expected"),
    [
        (3, [UNKNOWN, UNKNOWN, ErrorCode.NONE], ErrorCode.NONE),
        (1, [UNKNOWN], UNKNOWN),
        (0, [], UNKNOWN),
        (3, [ErrorCode.TOPIC_AUTHORIZATION_FAILED], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
    ids=["just made", "just deleted", "not there", "refused"],
)
def test_a_leader_that_does_not_know_yet_is_asked_again(
    led: int, codes: Sequence[ErrorCode], expected: ErrorCode
) -> None:
    cluster: Any = FakeCluster(led)
    answers = iter(codes)

    def ask(_broker: int, places: Sequence[TopicPartition]) -> Answers:
        return {each: Answer(int(next(answers))) for each in places}

    assert ask_leaders(cluster, [PLACE], ask)[PLACE].code == expected
