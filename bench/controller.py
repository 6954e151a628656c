"""The controller of a large cluster: what the loss and the return of one broker take, in time and in bytes.

    python -m bench.controller --brokers 100 --topics 1000 --partitions 100

Real decisions, records and images, no sockets or disks. Each figure is the best of several, in time of the processor;
`longest` is the longest that one decision, its records and its image hold the loop.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from bench.stalls import say
from moldau.broker.topics.partitions import HostedTopic
from moldau.controller.image import ClusterImage, Endpoint, TopicImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.members.membership import (
    Cursor,
    decide_fence_missing,
    decide_restore,
    decide_settle,
    decide_take_in,
    returning,
)
from moldau.controller.members.registration import BrokerRegistration
from moldau.controller.partitions.placement import Unplaceable, place
from moldau.controller.records import TopicCreated, decode_records, encode_records
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.ids import random_uuid

CONFIG = BrokerConfig.of({"node.id": "1", "min.insync.replicas": "2"})
CONTROLLER = 1
LOST = 50
OTHER = 51  # a broker that follows what becomes of the lost one's partitions
ROUNDS = 5

Decide = Callable[[ClusterImage], Decision[Any]]


class Done(NamedTuple):
    """The image after all of it, and what each entry took."""

    image: ClusterImage
    entries: list[tuple[float, int]]  # milliseconds and bytes
    partitions: int
    payloads: list[bytes]

    @property
    def told(self) -> str:
        total, longest = sum(each[0] for each in self.entries), max(each[0] for each in self.entries)
        sizes = [size for _, size in self.entries if size > 1]
        return (
            f"{self.partitions} partitions in {len(sizes)} entries, {sum(sizes):,} bytes, the largest {max(sizes):,}; "
            f"{total:.1f} ms, longest {longest:.1f} ms"
        )


class World:
    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.entries: list[tuple[float, int]] = []
        self.partitions = 0
        self.payloads: list[bytes] = []

    def decide(self, decide: Decide) -> Any:
        begun = time.thread_time()
        decision = decide(self.image)
        payload = encode_records(decision.records)
        if decision.records:
            self.image = apply(self.image, decision.records)
            self.payloads.append(payload)
        self.entries.append(((time.thread_time() - begun) * 1000, len(payload)))
        self.partitions += sum(len(getattr(each, "partitions", ())) for each in decision.records)
        return decision.reply

    def go_through(self, decide: Callable[..., Decision[Cursor | None]]) -> None:
        names = list(self.image.topics)
        cursor: Cursor | None = Cursor()
        while cursor is not None:
            cursor = self.decide(partial(decide, names=names, start=cursor, config=CONFIG))

    def follow(self, living: list[BrokerRegistration]) -> Done:
        """As the controller's duties do it."""
        if self.decide(partial(decide_fence_missing, registrations=living, controller_id=CONTROLLER)):
            self.go_through(decide_settle)
        coming = returning(self.image, living, controller_id=CONTROLLER)
        if coming.broker_ids:
            self.go_through(partial(decide_restore, coming=coming))
            self.decide(partial(decide_take_in, registrations=living, controller_id=CONTROLLER))
            self.go_through(decide_settle)
        return Done(self.image, self.entries, self.partitions, self.payloads)


def living(broker_id: int, start: int = 1) -> BrokerRegistration:
    endpoints = {"PLAINTEXT": Endpoint(f"broker-{broker_id}.example.org", 9092)}
    incarnation = bytes([start]) + broker_id.to_bytes(15, "big")
    return BrokerRegistration(broker_id, incarnation, endpoints, f"rack-{broker_id % 3}", has_whole_logs=True)


def build(brokers: int, topics: int, partitions: int) -> ClusterImage:
    image = World(ClusterImage()).follow([living(each) for each in range(1, brokers + 1)]).image
    records = []
    for number in range(topics):
        placed = place(image, partitions=partitions, replication_factor=3, start=number * 7)
        assert not isinstance(placed, Unplaceable)
        records.append(TopicCreated(TopicImage(f"topic-{number}", random_uuid(), tuple(placed))))
    return apply(image, decode_records(encode_records(records)))


def best(work: Callable[[], Done]) -> Done:
    return min((work() for _ in range(ROUNDS)), key=lambda done: sum(each[0] for each in done.entries))


def followed(before: ClusterImage, payloads: list[bytes]) -> Done:
    """As any other broker does: it reads the entries, applies them, and compares its partitions with each image."""
    hosted = {name: HostedTopic(topic, CONFIG.topic_defaults) for name, topic in before.topics.items()}
    image, entries, outdated = before, [], 0
    for payload in payloads:
        begun = time.thread_time()
        image = apply(image, decode_records(payload))
        for name in image.changed_topics:
            hosted[name].follow(image.topics[name], CONFIG.topic_defaults, OTHER)
        entries.append(((time.thread_time() - begun) * 1000, len(payload)))
        outdated += sum(
            OTHER in state.replicas and state is not before.topics[name].partitions[index]
            for name in image.changed_topics
            for index, state in enumerate(image.topics[name].partitions)
        )
    return Done(image, entries, outdated, payloads)


def timed(what: str, work: Callable[[], Any]) -> Any:
    took = []
    for _ in range(ROUNDS):
        begun = time.thread_time()
        made = work()
        took.append((time.thread_time() - begun) * 1000)
    say(f"{what:<28} {min(took):.1f} ms" + (f", {len(made):,} bytes" if isinstance(made, bytes) else ""))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=100)
    asked = parser.parse_args()
    tracemalloc.start()
    image = build(asked.brokers, asked.topics, asked.partitions)
    say(f"{'image in memory':<28} {tracemalloc.get_traced_memory()[0] / 1e6:.0f} MB")
    tracemalloc.stop()
    everybody = [living(each) for each in range(1, asked.brokers + 1)]
    others = [each for each in everybody if each.id != LOST]
    lost = best(lambda: World(image).follow(others))
    say(f"{'one broker is lost':<28} {lost.told}")
    say(f"{'another broker follows':<28} {best(lambda: followed(image, lost.payloads)).told}")
    back = best(lambda: World(lost.image).follow([*others, living(LOST, 2)]))
    say(f"{'it returns':<28} {back.told}")
    again = best(lambda: World(lost.image).follow(others))
    say(f"{'nothing happens':<28} {sum(each[0] for each in again.entries):.2f} ms")
    payload = timed("snapshot, in slices of it", lambda: encode_records([*snapshot_records(lost.image)]))
    timed("it is read at a start", lambda: apply(ClusterImage(), decode_records(payload)))


if __name__ == "__main__":
    main()
