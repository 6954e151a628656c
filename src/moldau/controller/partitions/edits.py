"""Partitions that one decision changes, by the cluster's brokers and their topics' configurations."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from moldau.controller.partitions.changes import Election, Target, Terms, change_partition
from moldau.controller.partitions.min_isr import least_min_isr, min_isr_of
from moldau.controller.records import PartitionsChanged
from moldau.controller.settings.features import ELIGIBLE_LEADER_REPLICAS_VERSION, level_of
from moldau.core.config.broker import BrokerConfig
from moldau.core.ids import TopicId


class PartitionEdits:
    """Each change is made on top of what the same decision changed before; the records hold what came out."""

    def __init__(
        self, image: ClusterImage, config: BrokerConfig, *, brokers: Mapping[int, BrokerImage] | None = None
    ) -> None:
        """`brokers` are those of the image, unless the decision changes some of them, too."""
        self._image = image
        self._config = config
        known = image.brokers if brokers is None else brokers
        self._registered = known.keys()
        self.able: frozenset[int] = frozenset(broker.id for broker in known.values() if broker.is_active)
        """Brokers that may lead."""
        self._least_min_isr = least_min_isr(image)
        self._terms: dict[bytes, Terms] = {}
        self._changed: dict[TopicId, dict[int, PartitionImage]] = {}

    def state(self, topic: TopicImage, index: int) -> PartitionImage:
        changed = self._changed.get(topic.id)
        state = None if changed is None else changed.get(index)
        return topic.partitions[index] if state is None else state

    def change(
        self,
        topic: TopicImage,
        index: int,
        target: Target,
        *,
        election: Election | None = None,
    ) -> bool:
        """Whether anything is different now."""
        before = self.state(topic, index)
        after = change_partition(
            before, target, self.terms(topic), self.able, registered=self._registered, election=election
        )
        if after is before:
            return False
        self._changed.setdefault(topic.id, {})[index] = after
        return True

    def terms(self, topic: TopicImage) -> Terms:
        terms = self._terms.get(topic.id)
        if terms is None:
            terms = self._terms[topic.id] = self._terms_of(topic)
        return terms

    def _terms_of(self, topic: TopicImage) -> Terms:
        defaults = self._config.topic_defaults
        of_topic = defaults.override(topic.configs) if topic.configs else defaults
        min_isr = min_isr_of(topic, self._least_min_isr) or of_topic.min_insync_replicas
        return Terms(
            min_isr=min(min_isr, len(topic.partitions[0].replicas)),
            election=Election.UNCLEAN if of_topic.unclean_leader_election_enable else Election.ONLINE,
            has_elr=level_of(self._image, ELIGIBLE_LEADER_REPLICAS_VERSION) > 0,
        )

    def records(self) -> tuple[PartitionsChanged, ...]:
        """One for each topic, however many of its partitions changed."""
        return tuple(PartitionsChanged(topic_id, states) for topic_id, states in self._changed.items())
