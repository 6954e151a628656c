"""Topics that are made, grown and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.client.cluster import Cluster, words_of
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from moldau.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from moldau.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.delete_topics import DeleteTopicState

BROKERS_DEFAULT = -1  # lets the broker choose by num.partitions and default.replication.factor
STATES_SINCE = 6  # of DeleteTopics; before, topics were a list of names

Assignment = Sequence[Sequence[int]]
"""The brokers of each partition."""


class Outcome(NamedTuple):
    code: int
    told: str

    @property
    def is_fine(self) -> bool:
        return self.code == ErrorCode.NONE


Outcomes = Mapping[str, Outcome]
"""Of each topic."""


def new_topic(
    name: str,
    *,
    partitions: int = BROKERS_DEFAULT,
    replication_factor: int = BROKERS_DEFAULT,
    assignment: Assignment = (),
    configs: Mapping[str, str],
) -> CreatableTopic:
    return CreatableTopic(
        name,
        num_partitions=BROKERS_DEFAULT if assignment else partitions,
        replication_factor=BROKERS_DEFAULT if assignment else replication_factor,
        assignments=[CreatableReplicaAssignment(number, [*brokers]) for number, brokers in enumerate(assignment)],
        configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
    )


def create(cluster: Cluster, topics: Iterable[CreatableTopic], *, is_dry_run: bool = False) -> Outcomes:
    request = CreateTopicsRequest(topics=[*topics], timeout_ms=_patience_ms(cluster), validate_only=is_dry_run)
    answer = cluster.ask_controller(
        request, CreateTopicsResponse, codes=lambda found: [each.error_code for each in found.topics]
    )
    return {each.name: outcome(each.error_code, each.error_message) for each in answer.topics}


def grow(cluster: Cluster, total: int, topics: Mapping[str, Assignment | None]) -> Outcomes:
    """To so many partitions; an assignment is that of the new ones."""
    asked = [
        CreatePartitionsTopic(
            name, total, None if new is None else [CreatePartitionsAssignment([*brokers]) for brokers in new]
        )
        for name, new in topics.items()
    ]
    request = CreatePartitionsRequest(topics=asked, timeout_ms=_patience_ms(cluster))
    answer = cluster.ask_controller(
        request, CreatePartitionsResponse, codes=lambda found: [each.error_code for each in found.results]
    )
    return {each.name: outcome(each.error_code, each.error_message) for each in answer.results}


def delete(cluster: Cluster, names: Sequence[str]) -> Outcomes:
    knows_states = cluster.versions().get(ApiKey.DELETE_TOPICS, (0, 0))[1] >= STATES_SINCE
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name) for name in names] if knows_states else [],
        topic_names=[*names],
        timeout_ms=_patience_ms(cluster),
    )
    answer = cluster.ask_controller(
        request, DeleteTopicsResponse, codes=lambda found: [each.error_code for each in found.responses]
    )
    return {each.name or "": outcome(each.error_code, each.error_message) for each in answer.responses}


def outcome(code: int, told: str | None) -> Outcome:
    return Outcome(code, told or words_of(code))


def _patience_ms(cluster: Cluster) -> int:
    return int(cluster.timeout_s * 1000)
