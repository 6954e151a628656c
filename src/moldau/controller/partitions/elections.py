"""Who leads: elections that somebody asks for, and those that are held from time to time.

Elections that follow from the failure or return of one of several brokers are in `membership`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from moldau.controller.image import ClusterImage, TopicImage
from moldau.controller.partitions.changes import Election, Target
from moldau.controller.partitions.edits import PartitionEdits
from moldau.controller.partitions.leaders import PREFERRED, UNCLEAN, needs_election, refuse_election
from moldau.controller.partitions.states import Refusal
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition

_KINDS = {PREFERRED: Election.PREFERRED, UNCLEAN: Election.UNCLEAN}
_NOBODY = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
AS_IT_IS = Target()


class Elected(NamedTuple):
    """What became of one election; no refusal is a new leader."""

    partition: TopicPartition
    refusal: Refusal | None = None


def decide_elect_leaders(
    image: ClusterImage, kind: int, partitions: Iterable[TopicPartition], *, config: BrokerConfig
) -> Decision[list[Elected]]:
    """A reply for each partition, in the order of the request."""
    edits = PartitionEdits(image, config)
    replies = [Elected(each, _elect(image, edits, each, kind)) for each in partitions]
    return Decision(records=edits.records(), reply=replies)


def _elect(image: ClusterImage, edits: PartitionEdits, partition: TopicPartition, kind: int) -> Refusal | None:
    refusal = refuse_election(image, partition, kind)
    if refusal is not None:
        return refusal
    topic = image.topics[partition.topic]
    if not needs_election(edits.state(topic, partition.partition), kind):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)
    if edits.change(topic, partition.partition, AS_IT_IS, election=_KINDS[kind]):
        return None
    return Refusal(_NOBODY[kind], _NOBODY[kind].message)


def imbalanced(topic: TopicImage) -> Iterator[TopicPartition]:
    """Partitions that their preferred replica does not lead, though it is in sync."""
    for index, state in enumerate(topic.partitions):
        if state.leader != state.replicas[0] and state.replicas[0] in state.isr:
            yield TopicPartition(topic.name, index)


def leaderless(topic: TopicImage) -> Iterator[TopicPartition]:
    for index, state in enumerate(topic.partitions):
        if state.leader == NO_LEADER:
            yield TopicPartition(topic.name, index)


def decide_balance_leaders(
    image: ClusterImage, partitions: Collection[TopicPartition], *, config: BrokerConfig
) -> Decision[int]:
    """Preferred replicas lead what they can; the reply is how many elections there were."""
    edits = PartitionEdits(image, config)
    count = 0
    for name, index in partitions:
        topic = image.topics.get(name)
        if topic is not None and index < len(topic.partitions):
            count += edits.change(topic, index, AS_IT_IS, election=Election.PREFERRED)
    return Decision(records=edits.records(), reply=count)


def decide_elect_unclean(
    image: ClusterImage, partitions: Collection[TopicPartition], *, config: BrokerConfig
) -> Decision[int]:
    """Leaders for partitions without one whose topics allow an unclean election by now."""
    edits = PartitionEdits(image, config)
    count = 0
    for name, index in partitions:
        topic = image.topics.get(name)
        if topic is None or index >= len(topic.partitions) or edits.terms(topic).election is not Election.UNCLEAN:
            continue
        if topic.partitions[index].leader == NO_LEADER:
            count += edits.change(topic, index, AS_IT_IS)
    return Decision(records=edits.records(), reply=count)
