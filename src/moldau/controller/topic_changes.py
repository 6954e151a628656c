"""A line of the log for each topic that was created, deleted or given more partitions."""

from __future__ import annotations

import logging

from moldau.controller.image import ClusterImage, TopicImage

LOGGER = logging.getLogger(__name__)

LINES_MAX = 20  # one request may create thousands of topics, and writing a line holds the loop for 20 us


def log_topic_changes(old: ClusterImage, new: ClusterImage) -> None:
    """To be subscribed to the controller's images."""
    deleted = [
        topic for name in new.changed_topics if (topic := old.topics.get(name)) and topic.id not in new.topic_ids
    ]
    created = [
        topic for name in new.changed_topics if (topic := new.topics.get(name)) and topic.id not in old.topic_ids
    ]
    _log_all("deleted", deleted)
    _log_all("created", created)
    _log_growth(old, new)


def _log_all(action: str, topics: list[TopicImage]) -> None:
    if len(topics) > LINES_MAX:
        partitions = sum(len(topic.partitions) for topic in topics)
        named = ", ".join(sorted(topic.name for topic in topics)[:LINES_MAX])
        fields = {"topics": len(topics), "partitions": partitions}
        LOGGER.info("%s %d topics with %d partitions: %s, ...", action, len(topics), partitions, named, extra=fields)
        return
    for topic in sorted(topics, key=lambda topic: topic.name):
        partitions = len(topic.partitions)
        LOGGER.info(
            "%s topic %s: partitions=%d%s",
            action,
            topic.name,
            partitions,
            "".join(f" {key}={value}" for key, value in sorted(topic.configs.items())),
            extra={"topic": topic.name, "partitions": partitions, "config": dict(topic.configs)},
        )


def _log_growth(old: ClusterImage, new: ClusterImage) -> None:
    grown = [
        (before, after)
        for name in sorted(new.changed_topics)
        if (before := old.topics.get(name)) is not None
        and (after := new.topics.get(name)) is not None
        and before.id == after.id
        and len(before.partitions) < len(after.partitions)
    ]
    if len(grown) > LINES_MAX:
        LOGGER.info("%d topics have more partitions", len(grown), extra={"topics": len(grown)})
        return
    for before, after in grown:
        counts = len(before.partitions), len(after.partitions)
        fields = {"topic": after.name, "partitions": counts[1]}
        LOGGER.info("topic %s grew from %d to %d partitions", after.name, *counts, extra=fields)
