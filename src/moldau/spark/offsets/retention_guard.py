"""A look at a cluster for readers that retention may pass, and the hold on a topic's retention that keeps it from that.

What a hold changed is noted in the cluster itself, as the metadata of an offset in a group of the topic's own: whoever
looks next, on whatever machine, can put it back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import client_config, topic_config
from moldau.spark.offsets.retention import (
    FOREVER,
    Margin,
    Position,
    TopicRetention,
    held_retention_ms,
    margin,
    topic_retention,
)

ANSWER_S_MAX = 10.0
NOTES_GROUP = "moldau-retention-hold-"
KEYS = ("retention.ms", "retention.bytes", "cleanup.policy")


@dataclass(frozen=True, slots=True)
class Hold:
    """What applied to a topic before, what of it was the topic's own, what was set instead, and for whom."""

    before: Mapping[str, str]
    own: frozenset[str]
    changed: Mapping[str, str]
    groups: frozenset[str] = frozenset()

    def as_text(self) -> str:
        told = {"before": self.before, "own": sorted(self.own), "changed": self.changed, "groups": sorted(self.groups)}
        return json.dumps(told)


def hold_from(text: str) -> Hold:
    told = json.loads(text)
    return Hold(told["before"], frozenset(told["own"]), told["changed"], frozenset(told["groups"]))


class RetentionGuard:
    """Raises KafkaException when nobody answers."""

    def __init__(self, settings: Iterable[tuple[str, Any]], *, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._settings = dict(settings)
        self._answer_s_max = answer_s_max
        self._admin = AdminClient(client_config((), **self._settings))

    def margins(self, group: str, *, now_ms: int) -> list[Margin]:
        """One for each partition that the group has committed an offset of, as if nothing were held."""
        positions = self._positions(group)
        topics = sorted({one.place.topic for one in positions})
        known = {topic: self._retention_without_hold(topic) for topic in topics}
        return [margin(one, known[one.place.topic], now_ms=now_ms) for one in positions]

    def hold(self, group: str, margins: Collection[Margin], *, within_ms: int, now_ms: int) -> list[str]:
        """Raise what is too short, put back what is no longer needed; what was done, in words."""
        said = []
        for topic in sorted({one.position.place.topic for one in margins}):
            own = [one for one in margins if one.position.place.topic == topic]
            if any(one.is_short(within_ms) for one in own):
                said += self._raise(topic, group, held_retention_ms(own, within_ms=within_ms, now_ms=now_ms))
            else:
                said += self._release(topic, group)
        return said

    def _raise(self, topic: str, group: str, retention_ms: int) -> list[str]:
        values, own = self._config(topic)
        now, note = topic_retention(values), self._note(topic)
        note = note or Hold(values, own, {})
        changed = dict(note.changed)
        # A hold that others need longer stays as long as that.
        if now.retention_ms != FOREVER and now.retention_ms < retention_ms:
            changed["retention.ms"] = str(retention_ms)
        if now.retention_bytes != FOREVER:
            changed["retention.bytes"] = str(FOREVER)
        fresh = replace(note, changed=changed, groups=note.groups | {group})
        # The note first: one that nothing was done for is harmless, a change that nobody knows of is not.
        self._write_note(topic, fresh)
        changes = {key: value for key, value in changed.items() if values.get(key) != value}
        if changes:
            self._alter(topic, changes)
        return [f"{topic}: {key} is {value} instead of {values.get(key)}" for key, value in changes.items()] or [
            f"{topic}: still held"
        ]

    def _release(self, topic: str, group: str) -> list[str]:
        note = self._note(topic)
        if note is None or group not in note.groups:
            return []
        left = note.groups - {group}
        if left:
            self._write_note(topic, replace(note, groups=left))
            return [f"{topic}: no longer held for {group}; still for {', '.join(sorted(left))}"]
        values, _ = self._config(topic)
        # What somebody has changed since is theirs.
        ours = {
            key: note.before[key] if key in note.own else None
            for key, value in note.changed.items()
            if values.get(key) == value
        }
        if ours:
            self._alter(topic, ours)
        self._admin.delete_consumer_groups([NOTES_GROUP + topic], request_timeout=self._answer_s_max)[
            NOTES_GROUP + topic
        ].result()
        shown = ", ".join(f"{key} is {value or 'the default'}" for key, value in ours.items())
        return [f"{topic}: released; {shown or 'it was changed by somebody else and stays so'}"]

    def _positions(self, group: str) -> list[Position]:
        committed = {
            TopicPartition(one.topic, one.partition): one.offset
            for one in self._committed(group)
            if one.offset >= 0 and one.error is None
        }
        earliest, latest = self._ends(committed, OffsetSpec.earliest()), self._ends(committed, OffsetSpec.latest())
        bare = [
            Position(place, offset, earliest[place], latest[place])
            for place, offset in sorted(committed.items())
            if place in earliest and place in latest
        ]
        return self._with_times(bare, group)

    def _committed(self, group: str) -> list[ClientPartition]:
        """Asked only of groups that there are: the library crashes when a coordinator has to be made first."""
        told = self._admin.list_consumer_groups(request_timeout=self._answer_s_max).result()
        if group not in {one.group_id for one in told.valid}:
            if told.errors:  # a coordinator that is still loading may know it
                wrong = told.errors[0]  # of either kind, whatever the library says
                raise wrong if isinstance(wrong, KafkaException) else KafkaException(wrong)
            return []
        asked = self._admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], request_timeout=self._answer_s_max
        )
        found: list[ClientPartition] = asked[group].result().topic_partitions
        return found

    def _ends(self, places: Collection[TopicPartition], which: Any) -> dict[TopicPartition, int]:
        """A topic that is gone by now is left out."""
        if not places:
            return {}
        asked = self._admin.list_offsets(
            {ClientPartition(place.topic, place.partition): which for place in places},
            request_timeout=self._answer_s_max,
        )
        found = {}
        for place, future in asked.items():
            if future.exception() is None:
                found[TopicPartition(place.topic, place.partition)] = future.result().offset
        return found

    def _with_times(self, positions: list[Position], group: str) -> list[Position]:
        """With the time of each first unread record; one in a transaction that was aborted has one too.

        Whoever may look at the group may name it here as well: the client commits nothing to it.
        """
        open_ones = {one.place: one for one in positions if one.unread}
        if not open_ones:
            return positions
        consumer = Consumer(
            client_config((), **self._settings)
            | {"group.id": group, "enable.auto.commit": "false", "isolation.level": "read_uncommitted"}
            | {"enable.partition.eof": "true", "fetch.message.max.bytes": "65536"}
        )
        times: dict[TopicPartition, int | None] = {}
        try:
            starts = [(place, max(one.offset, one.earliest)) for place, one in open_ones.items()]
            consumer.assign([ClientPartition(place.topic, place.partition, offset) for place, offset in starts])
            while len(times) < len(open_ones):
                message = consumer.poll(self._answer_s_max)
                if message is None:
                    break
                place = TopicPartition(str(message.topic()), int(message.partition() or 0))
                if place not in times:
                    times[place] = None if message.error() is not None else message.timestamp()[1]
                    consumer.pause([ClientPartition(place.topic, place.partition)])
        finally:
            consumer.close()
        return [Position(one.place, one.offset, one.earliest, one.latest, times.get(one.place)) for one in positions]

    def _retention_without_hold(self, topic: str) -> TopicRetention:
        values, _ = self._config(topic)
        note = self._note(topic)
        return topic_retention(values if note is None else {**values, **note.before})

    def _config(self, topic: str) -> tuple[dict[str, str], frozenset[str]]:
        """What applies, and the names of what the topic has of its own."""
        told = topic_config(self._admin, topic, answer_s_max=self._answer_s_max)
        entries = {key: told[key] for key in KEYS if key in told}
        own = frozenset(key for key, entry in entries.items() if entry.source == _OWN)
        return {key: str(entry.value) for key, entry in entries.items()}, own

    def _alter(self, topic: str, values: Mapping[str, str | None]) -> None:
        entries = [
            ConfigEntry(
                key,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in values.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource], request_timeout=self._answer_s_max)[resource].result()

    def _note(self, topic: str) -> Hold | None:
        found = [one.metadata for one in self._committed(NOTES_GROUP + topic) if one.metadata]
        return hold_from(found[0]) if found else None

    def _write_note(self, topic: str, hold: Hold) -> None:
        group = NOTES_GROUP + topic
        noted = ConsumerGroupTopicPartitions(group, [ClientPartition(topic, 0, 0, hold.as_text())])
        self._admin.alter_consumer_group_offsets([noted], request_timeout=self._answer_s_max)[group].result()


_OWN = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
