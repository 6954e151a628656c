"""Clients' own metrics: the same requests to Apache Kafka 4.3.1 and to us, with the same answers.

Apache Kafka announces these APIs only where it has a plugin that takes the metrics, and answers them all the same; we
announce and answer them where metrics are on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from typing import Any

import pytest

import moldau
from moldau.wire.compression import Codec, compress
from tests.differential.conftest import PROPERTIES, Address
from tests.differential.peer import Answer, Peer
from tests.telemetry.metrics import pushed

pytestmark = pytest.mark.xdist_group("differential")

GET, PUSH = "GetTelemetrySubscriptions", "PushTelemetry"
ZERO, ONE = bytes(16), bytes(15) + b"\1"
CLIENT_METRICS = 16
METRICS = pushed(("gauge", "org.apache.kafka.lag", 1), ("sum", "org.apache.kafka.sent.total", 2))
MAX_BYTES = 1_048_576
Told = list[tuple[str, Any]]


@pytest.fixture(scope="module")
def telemetry_candidate(broker_kind: str, candidate: Address) -> Iterator[Address]:
    if broker_kind != "moldau":
        yield candidate
        return
    with moldau.run(overrides=PROPERTIES, metrics=True) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        yield host, int(port)


class Story:
    """What one broker answers to one client, which has a connection for each instance."""

    def __init__(self, address: Address, name: str, note: Told) -> None:
        self.address, self.name, self.told = address, name, note
        self.peer = Peer(address, client_id=name)

    def __enter__(self) -> Story:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    def subscribe(self, suffix: str, **values: str | None) -> None:
        keys = {"interval": "interval.ms", "metrics": "metrics", "match": "match"}
        configs = [
            {"name": keys[key], "value": value, "config_operation": 1 if value is None else 0}
            for key, value in values.items()
        ]
        name = f"{self.name}-{suffix}"
        resource = {"resource_type": CLIENT_METRICS, "resource_name": name, "configs": configs}
        answer = self.peer.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
        assert isinstance(answer, dict), answer
        assert answer["responses"][0]["error_code"] == 0, answer

    def get(self, note: str, instance_id: bytes = ZERO) -> Any:
        answer = self.peer.ask(GET, 0, client_instance_id=instance_id)
        shown = answer
        if isinstance(answer, dict):
            is_new = instance_id == ZERO and answer["error_code"] == 0
            shown = {
                **answer,
                "client_instance_id": answer["client_instance_id"] not in (ZERO, ONE) if is_new else "as asked",
                "subscription_id": "" if is_new else answer["subscription_id"],
                "requested_metrics": sorted(answer["requested_metrics"]),
            }
            if not is_new:
                assert answer["client_instance_id"] == (ZERO if answer["error_code"] else instance_id)
            if len(answer["requested_metrics"]) > 1:
                shown["subscription_id"] = "by the order of Java's hashes"
        self.told.append((note, shown))
        return answer

    def push(self, note: str, instance_id: bytes, subscription: int, *, codec: int = 0, **fields: Any) -> Answer:
        wanted: dict[str, Any] = {"terminating": False, "metrics": METRICS, **fields}
        answer = self.peer.ask(
            PUSH, 0, client_instance_id=instance_id, subscription_id=subscription, compression_type=codec, **wanted
        )
        self.told.append((note, answer))
        return answer

    def until_subscribed(self, *metrics: str) -> None:
        """Kafka's brokers follow the metadata in their own time; another instance each time is never too early."""
        deadline = time.monotonic() + 20
        while True:
            with closing(Peer(self.address, client_id=self.peer.client_id)) as peer:
                answer = peer.ask(GET, 0, client_instance_id=ZERO)
            assert isinstance(answer, dict), answer
            if sorted(answer["requested_metrics"]) == sorted(metrics):
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)


def instance(number: int, story: Story) -> bytes:
    """An id of this story's own: Apache Kafka forgets only the last instance of a connection that goes."""
    return sha256(f"{story.name} {number}".encode()).digest()[:16]


def matched(story: Story) -> str:
    return f"client_id={story.name}"


def subscriptions(story: Story) -> None:
    story.get("nothing is wanted", instance(1, story))
    story.get("too early", instance(1, story))
    story.get("a new instance")
    story.subscribe("one", metrics="org.apache.kafka.", interval="100", match=matched(story))
    story.until_subscribed("org.apache.kafka.")
    story.get("at once, for it changed", instance(1, story))
    story.get("the id that nobody has", ONE)
    story.subscribe("two", metrics="a.,b.", interval="3600000", match=matched(story))
    story.until_subscribed("org.apache.kafka.", "a.", "b.")
    story.get("both together", instance(2, story))
    story.subscribe("two", metrics="*,b.")
    story.until_subscribed("*")
    story.get("all", instance(3, story))
    for key in ("one", "two"):
        story.subscribe(key, metrics=None, interval=None, match=None)
    story.until_subscribed()
    story.get("nothing any more", instance(4, story))


def pushes(story: Story) -> None:
    story.subscribe("all", metrics="*", interval="200", match=matched(story))
    story.until_subscribed("*")
    known = story.get("subscription", instance(1, story))["subscription_id"]
    story.push("at once", instance(1, story), known)
    story.push("too early", instance(1, story), known)
    story.get("too early", instance(1, story))
    time.sleep(0.21)
    story.push("in time", instance(1, story), known)
    story.push("for another subscription, too early", instance(1, story), known + 1)
    time.sleep(0.21)
    story.push("for another subscription", instance(1, story), known + 1)
    story.get("again, at once", instance(1, story))
    story.push("nothing", instance(1, story), known, metrics=b"")
    story.push("the last", instance(1, story), known, terminating=True)
    story.push("after the last", instance(1, story), known)
    time.sleep(0.21)
    story.push("after what was refused", instance(1, story), known)
    for each in (ZERO, ONE):
        story.push("an id that nobody has", each, known)


def refusals(story: Story) -> None:
    story.subscribe("all", metrics="*", interval="100", match=matched(story))
    story.until_subscribed("*")

    def fresh(number: int) -> tuple[bytes, int]:
        return instance(number, story), story.get("subscription", instance(number, story))["subscription_id"]

    for number, codec in enumerate((*Codec, 5, -1, 127), 1):
        data = bytes(compress(codec, METRICS)) if codec in {*Codec} else METRICS
        story.push(f"codec {codec}", *fresh(number), codec=codec, metrics=data)
    for number, codec in enumerate((Codec.GZIP, Codec.LZ4, Codec.ZSTD), 20):
        story.push(f"not {codec.name}", *fresh(number), codec=codec, metrics=METRICS)
    story.push("as long as it may be", *fresh(30), codec=Codec.GZIP, metrics=b"\0" * MAX_BYTES)
    story.push("too long", *fresh(31), metrics=b"\0" * (MAX_BYTES + 1))
    bomb = bytes(compress(Codec.GZIP, b"\0" * (MAX_BYTES + 1)))
    story.push("unfolds too far", *fresh(32), codec=Codec.GZIP, metrics=bomb)
    story.push("an instance that is not known", instance(33, story), 1)


def reconnection(story: Story) -> None:
    story.subscribe("all", metrics="*", interval="60000", match=matched(story))
    story.until_subscribed("*")
    known = story.get("subscription", instance(1, story))["subscription_id"]
    story.get("too early", instance(1, story))
    story.push("pushed", instance(1, story), known)
    story.push("too early", instance(1, story), known)
    story.peer.reconnect()

    def is_forgotten() -> bool:
        answer = story.peer.ask(PUSH, 0, client_instance_id=instance(1, story), subscription_id=known, metrics=METRICS)
        return isinstance(answer, dict) and answer["error_code"] == 0

    deadline = time.monotonic() + 20
    while not is_forgotten():
        assert time.monotonic() < deadline, "the instance outlives its connection"
        time.sleep(0.05)


STORIES: dict[str, Callable[[Story], None]] = {
    each.__name__: each for each in (subscriptions, pushes, refusals, reconnection)
}


def told(name: str, address: Address) -> Told:
    found: Told = []
    with Story(address, f"telemetry-{name}", found) as story:
        STORIES[name](story)
        story.subscribe("all", metrics=None, interval=None, match=None)
    return found


@pytest.mark.parametrize("name", STORIES)
def test_same_answers(name: str, judge: Address, telemetry_candidate: Address) -> None:
    assert told(name, telemetry_candidate) == told(name, judge)
