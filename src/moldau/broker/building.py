"""Partitions in the making: a job for a thread, and how its failure is told apart from its success."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.partitions import HostedTopic, leadership
from moldau.controller.image import TopicImage
from moldau.core.ids import TopicPartition
from moldau.log.directories import LogDirectories
from moldau.log.opening import LogJob
from moldau.replication.partition import Partition


def prepare(directories: LogDirectories, hosted: HostedTopic, indexes: Sequence[int], now_ms: int) -> list[LogJob]:
    topic = hosted.image
    return [
        directories.prepare(TopicPartition(topic.name, index), topic_id=topic.id, config=hosted.config, now_ms=now_ms)
        for index in indexes
    ]


def build(broker_id: int, topic: TopicImage, jobs: Sequence[LogJob]) -> list[Partition | None]:
    """A partition for each job, None where there is none; may run in any thread."""
    return [_build(broker_id, topic, job) for job in jobs]


def _build(broker_id: int, topic: TopicImage, job: LogJob) -> Partition | None:
    job.run()
    if job.log is None:
        return None
    index = job.partition.partition
    if job.log.on_failure is None:  # what the disk refuses here is for the loop to judge
        job.log.on_failure = job.refuse
    partition = Partition(
        topic.name,
        index,
        topic_id=topic.id,
        log=job.log,
        broker_id=broker_id,
        leadership=leadership(topic.partitions[index]),
    )
    return None if job.discard_if_unusable() else partition
