"""What the driver asks the cluster: which partitions there are, where they begin and end, what is at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import OffsetSpec

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, LEADER_CHANGED, NoAnswer, admin_client, patiently, reason
from moldau.spark.clients.settings import USUAL_PATIENCE, Patience
from moldau.spark.offsets.bounds import Offsets
from moldau.spark.options import READ_COMMITTED, Subscription

# Topics that the brokers keep for themselves; a pattern of `.*` does not mean them.
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")

PLACES_TOLD_MAX = 5
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # from brokers that have none


NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class NotThere(NoAnswer):
    """A partition that was there a moment ago was deleted since."""


@dataclass(frozen=True, slots=True)
class Described:
    """Partitions that exist, and the ids of their topics, where the brokers give them ids."""

    places: set[TopicPartition]
    topic_ids: Mapping[str, str]


class Cluster:
    """A view through one admin client; every call asks anew."""

    def __init__(self, settings: ClientSettings, patience: Patience = USUAL_PATIENCE) -> None:
        self.settings = settings
        self.patience = patience
        given = dict(settings)
        self.servers = given.get("bootstrap.servers", "")
        self.isolation = (
            IsolationLevel.READ_COMMITTED
            if given.get("isolation.level", "").lower() == READ_COMMITTED
            else IsolationLevel.READ_UNCOMMITTED
        )

    def places(self, subscription: Subscription) -> set[TopicPartition]:
        """The partitions that exist of what is subscribed to."""
        return self.subscribed(subscription).places

    def subscribed(self, subscription: Subscription) -> Described:
        """What exists of what is subscribed to."""
        if subscription.pattern is not None:
            return self.described(self._matching(re.compile(subscription.pattern)))
        if not subscription.places:
            return self.described(subscription.topics)
        found = self.described({place.topic for place in subscription.places})
        return Described(found.places & set(subscription.places), found.topic_ids)

    def missing(self, subscription: Subscription, places: Collection[TopicPartition]) -> list[str]:
        """What is subscribed to by name and does not exist."""
        topics = {place.topic for place in places}
        absent = [topic for topic in subscription.topics if topic not in topics]
        return absent + [str(place) for place in subscription.places if place not in places]

    def earliest(self, places: Collection[TopicPartition]) -> Offsets:
        return self._listed({place: OffsetSpec.earliest() for place in places}, "earliest")

    def latest(self, places: Collection[TopicPartition]) -> Offsets:
        """The end of each partition as its readers see it: of committed records where only those are read."""
        return self._listed({place: OffsetSpec.latest() for place in places}, "latest")

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset at or after each time; -1 where there is none."""
        return self._listed({place: OffsetSpec.for_timestamp(ms) for place, ms in timestamps_ms.items()}, "timed")

    def described(self, topics: Collection[str]) -> Described:
        """Those of the topics that exist."""
        names = sorted(topics)
        if not names:
            return Described(set(), {})
        try:
            found = patiently(lambda: self._describe(names), self.patience)
        except KafkaException as wrong:
            raise self._no_answer(f"topic {', '.join(map(repr, names[:PLACES_TOLD_MAX]))}", wrong) from None
        return Described(
            {TopicPartition(topic, each.id) for topic, told in found.items() for each in told.partitions},
            {topic: str(told.topic_id) for topic, told in found.items() if str(told.topic_id) != NO_TOPIC_ID},
        )

    def _describe(self, topics: Sequence[str]) -> dict[str, Any]:
        asked = admin_client(self.settings).describe_topics(TopicCollection(topics), request_timeout=ANSWER_S_MAX)
        found = {}
        for topic, answer in asked.items():
            try:
                found[topic] = answer.result()
            except KafkaException as wrong:
                if wrong.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return found

    def _matching(self, pattern: re.Pattern[str]) -> list[str]:
        try:
            listed = patiently(lambda: admin_client(self.settings).list_topics(timeout=ANSWER_S_MAX), self.patience)
        except KafkaException as wrong:
            raise self._no_answer("the list of topics", wrong) from None
        return [name for name in listed.topics if name not in INTERNAL and pattern.fullmatch(name)]

    def _listed(self, specs: Mapping[TopicPartition, Any], what: str) -> Offsets:
        if not specs:
            return {}
        asked = {ClientPartition(place.topic, place.partition): spec for place, spec in specs.items()}

        def ask() -> Offsets:
            admin = admin_client(self.settings)
            futures = admin.list_offsets(asked, isolation_level=self.isolation, request_timeout=ANSWER_S_MAX)
            try:
                return {
                    TopicPartition(place.topic, place.partition): each.result().offset
                    for place, each in futures.items()
                }
            except KafkaException as wrong:
                if wrong.args[0].code() in LEADER_CHANGED:
                    admin.list_topics(timeout=ANSWER_S_MAX)  # or the library asks with the old epoch for minutes
                raise

        try:
            return patiently(ask, self.patience)
        except KafkaException as wrong:
            places = ", ".join(str(place) for place in sorted(specs)[:PLACES_TOLD_MAX])
            told = self._no_answer(f"the {what} offsets of {places}", wrong)
            raise (NotThere(str(told)) if wrong.args[0].code() in NOT_THERE else told) from None

    def _no_answer(self, what: str, wrong: KafkaException) -> NoAnswer:
        return NoAnswer(f"cannot get {what} from {self.servers}: {reason(wrong)}")
