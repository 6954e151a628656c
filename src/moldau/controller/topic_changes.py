"""A line of the log for each topic that was created, deleted or given more partitions."""

from __future__ import annotations

import logging

from moldau.controller.image import ClusterImage, TopicImage

log = logging.getLogger(__name__)

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
    for name in new.changed_topics:
        _log_growth(old.topics.get(name), new.topics.get(name))


def _log_all(action: str, topics: list[TopicImage]) -> None:
    if len(topics) > LINES_MAX:
        partitions = sum(len(topic.partitions) for topic in topics)
        named = ", ".join(sorted(topic.name for topic in topics)[:LINES_MAX])
        fields = {"topics": len(topics), "partitions": partitions}
        log.info("%s %d topics with %d partitions: %s, ...", action, len(topics), partitions, named, extra=fields)
        return
    for topic in sorted(topics, key=lambda topic: topic.name):
        partitions = len(topic.partitions)
        log.info(
            "%s topic %s: partitions=%d%s",
            action,
            topic.name,
            partitions,
            "".join(f" {key}={value}" for key, value in sorted(topic.configs.items())),
            extra={"topic": topic.name, "partitions": partitions, "config": dict(topic.configs)},
        )


def _log_growth(old: TopicImage | None, new: TopicImage | None) -> None:
    if old is None or new is None or old.id != new.id or len(old.partitions) == len(new.partitions):
        return
    fields = {"topic": new.name, "partitions": len(new.partitions)}
    log.info("topic %s grew from %d to %d partitions", new.name, len(old.partitions), len(new.partitions), extra=fields)
