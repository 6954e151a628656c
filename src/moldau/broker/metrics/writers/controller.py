"""The cluster as its active controller knows it. As in Kafka's older releases other brokers tell zeros, so that sums
over all brokers are right."""

from __future__ import annotations

from moldau.broker.context import Services
from moldau.controller.image import TopicImage
from moldau.coordinator.long_work import in_slices
from moldau.core.exposition import Exposition
from moldau.core.ids import NO_LEADER


async def write_controller(services: Services, out: Exposition) -> None:
    is_active, image = services.controller.is_active, services.controller.image
    topics = [*image.topics.values()] if is_active else []
    partitions = offline = imbalanced = 0
    async for topic in in_slices(topics, services.long_work):
        partitions += len(topic.partitions)
        without, elsewhere = _leaders(topic)
        offline += without
        imbalanced += elsewhere
    active = sum(1 for _ in image.active_brokers()) if is_active else 0
    fenced = len(image.brokers) - active if is_active else 0
    for suffix, figure, help_text in (
        ("activecontrollercount", int(is_active), "Whether this broker is the active controller."),
        ("globaltopiccount", len(topics), "Topics of the cluster."),
        ("globalpartitioncount", partitions, "Partitions of the cluster."),
        ("offlinepartitionscount", offline, "Partitions that nobody leads."),
        ("preferredreplicaimbalancecount", imbalanced, "Partitions led by another replica than their first."),
        ("activebrokercount", active, "Brokers that live."),
        ("fencedbrokercount", fenced, "Brokers that are registered and do not live."),
    ):
        out.add(f"kafka_controller_kafkacontroller_{suffix}", help_text, {}, figure)


def _leaders(topic: TopicImage) -> tuple[int, int]:
    """How many partitions nobody leads, and how many another replica than the preferred one."""
    leaderless = sum([each.leader == NO_LEADER for each in topic.partitions])
    return leaderless, sum([each.leader != each.replicas[0] for each in topic.partitions]) - leaderless
