"""Offsets of a group whose coordinator is on its way, as on a cluster that nobody had a group on before."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from moldau.spark.clients.librdkafka import patiently
from moldau.spark.offsets.committed import committed


class Coordinator:
    """Answers with these errors first."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return places


def test_a_coordinator_that_moves_is_waited_for() -> None:
    places = [TopicPartition("orders", 0, 7)]
    moving = Coordinator(KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    assert committed(cast(Consumer, moving), places) == places


def test_a_list_of_groups_waits_for_coordinators_too() -> None:
    loading = Coordinator(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE)
    assert patiently(lambda: loading.committed([], 1.0)) == []


def test_what_does_not_pass_is_told() -> None:
    refusing = Coordinator(KafkaError.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException, match="authorization"):
        committed(cast(Consumer, refusing), [])
