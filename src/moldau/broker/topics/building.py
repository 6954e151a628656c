"""Partitions in the making: a job for a thread, and how its failure is told apart from its success."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.topics.partitions import HostedTopic, assignment, leadership
from moldau.controller.image import TopicImage
from moldau.core.clock import Clock
from moldau.core.ids import TopicPartition
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.opening import LogJob, forget_offsets_of
from moldau.replication.assignment import ReplicationTerms
from moldau.replication.partition import DEFAULT_TERMS, Partition


def prepare(directories: LogDirectories, hosted: HostedTopic, indexes: Sequence[int], now_ms: int) -> list[LogJob]:
    topic = hosted.image
    return [
        directories.prepare(TopicPartition(topic.name, index), topic_id=topic.id, config=hosted.config, now_ms=now_ms)
        for index in indexes
    ]


def build(
    broker_id: int,
    topic: TopicImage,
    jobs: Sequence[LogJob],
    *,
    clock: Clock,
    is_given_up: Callable[[], bool] | None = None,
    terms: ReplicationTerms = DEFAULT_TERMS,
) -> list[Partition | None]:
    """A partition for each job, None where there is none; may run in any thread.

    What is given up ends with the log that is being opened, and nobody may count on what was made.
    """
    built: list[Partition | None] = []
    for job in jobs:
        if is_given_up is not None and is_given_up():
            break
        built.append(_build(broker_id, topic, job, clock, terms))
    forget_offsets_of(jobs)
    return [None if job.log is None else partition for job, partition in zip(jobs, built, strict=False)]


def _build(broker_id: int, topic: TopicImage, job: LogJob, clock: Clock, terms: ReplicationTerms) -> Partition | None:
    job.run()
    if job.log is None:
        return None
    index = job.partition.partition
    if job.log.on_failure is None:  # what the disk refuses here is for the loop to judge
        job.log.on_failure = job.refuse
    partition = _partition_of(terms)(
        topic.name,
        index,
        topic_id=topic.id,
        log=job.log,
        broker_id=broker_id,
        leadership=leadership(topic.partitions[index]),
        assignment=assignment(topic.partitions[index]),
        high_watermark=job.high_watermark,
        now_ms=clock.elapsed_ms(),
        terms=terms,
    )
    return None if job.discard_if_unusable() else partition


def _partition_of(terms: ReplicationTerms) -> Callable[..., Partition]:
    """Who counts nothing has partitions that do not look whether to."""
    if terms.traffic is None:
        return Partition
    from moldau.replication.counted_partition import CountedPartition

    return partial(CountedPartition, traffic=terms.traffic)
