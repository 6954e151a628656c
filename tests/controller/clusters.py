"""Small clusters to decide on."""

from __future__ import annotations

from collections.abc import Callable

from moldau.controller.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.records import BrokerRegistered, ClusterCreated, TopicCreated
from moldau.core.ids import TopicId

ENDPOINTS = {"PLAINTEXT": Endpoint("localhost", 9092)}


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


def counting_ids(first: int = 1) -> Callable[[], TopicId]:
    numbers = iter(range(first, 1_000_000))
    return lambda: topic_id(next(numbers))


def cluster(*topics: TopicImage, brokers: int = 1, racks: tuple[str | None, ...] = ()) -> ClusterImage:
    """Brokers 1 to n, and these topics."""
    images = [
        BrokerImage(number, ENDPOINTS, rack=racks[number - 1] if racks else None) for number in range(1, brokers + 1)
    ]
    return apply(
        ClusterImage(),
        [
            ClusterCreated("cluster"),
            *(BrokerRegistered(image) for image in images),
            *(TopicCreated(topic) for topic in topics),
        ],
    )


def partition(*replicas: int) -> PartitionImage:
    return PartitionImage(replicas=replicas, isr=replicas, leader=replicas[0])


def topic(name: str, partitions: int = 1, *, number: int = 100, configs: dict[str, str] | None = None) -> TopicImage:
    return TopicImage(name, topic_id(number), (partition(1),) * partitions, configs or {})
