"""Consumer instances of v2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.rest.proxies import BINARY, JSON_V2, V2, WAIT_S_MAX, Answer, Proxy, eventually, running_proxy

pytestmark = pytest.mark.xdist_group("rest")


class Instance:
    def __init__(self, proxy: Proxy, group: str, name: str) -> None:
        self.proxy = proxy
        self.group = group
        self.path = f"/consumers/{group}/instances/{name}"

    def post(self, path: str, body: Any = None) -> Answer:
        return self.proxy.post(f"{self.path}/{path}", body, kind=V2)

    def get(self, path: str, body: Any = None, accept: str | None = None) -> Answer:
        return self.proxy.ask("GET", f"{self.path}/{path}", body, kind=V2, accept=accept)

    def values(self, count: int, accept: str = JSON_V2) -> list[Any]:
        """As many as come until there are that many."""
        found: list[Any] = []

        def is_enough() -> bool:
            answer = self.get("records?timeout=500", accept=accept)
            assert answer.status == 200, answer.content
            found.extend(each["value"] for each in answer.json)
            return len(found) >= count

        eventually(is_enough)
        return found


@contextmanager
def instance(proxy: Proxy, **config: str) -> Iterator[Instance]:
    group = config.pop("group", f"g-{uuid4()}")
    wanted = {"format": "json", "auto.offset.reset": "earliest", **config}
    made = proxy.post(f"/consumers/{group}", wanted, kind=V2)
    assert made.status == 200, made.content
    found = Instance(proxy, group, made.json["instance_id"])
    assert made.json["base_uri"] == f"{proxy.url}{found.path}"
    yield found
    assert proxy.ask("DELETE", found.path).status in (204, 404)


def at(topic: str, *partitions: int) -> dict[str, Any]:
    return {"partitions": [{"topic": topic, "partition": each} for each in partitions]}


def test_subscribe_read_commit_and_go_on(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic)
    proxy.produce(topic, [1, {"a": 2}, None])
    with instance(proxy, **{"auto.commit.enable": "false"}) as first:
        assert first.post("subscription", {"topics": [topic]}).status == 204
        assert first.get("subscription").json == {"topics": [topic]}
        assert first.values(3) == [1, {"a": 2}, None]
        assert first.get("assignments").json == at(topic, 0)
        assert first.get("offsets", at(topic, 0)).json == {"offsets": []}
        assert first.post("offsets").status == 200
        committed = {"offsets": [{"topic": topic, "partition": 0, "offset": 3, "metadata": ""}]}
        assert first.get("offsets", at(topic, 0)).json == committed
    proxy.produce(topic, ["next"])
    with instance(proxy, group=first.group) as second:
        second.post("subscription", {"topics": [topic]})
        assert second.values(1) == ["next"]


def test_a_commit_names_the_last_record_that_was_read(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic)
    with instance(proxy) as one:
        one.post("assignments", at(topic, 0))
        body = {"offsets": [{"topic": topic, "partition": 0, "offset": 41, "metadata": "mine"}]}
        assert one.post("offsets", body).status == 200
        config = {"bootstrap.servers": proxy.bootstrap, "group.id": one.group}
        consumer = Consumer(config)
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S_MAX)
        consumer.close()
        assert (found.offset, found.metadata) == (42, "mine")


def test_records_of_a_client_in_every_partition(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic, partitions=3)
    producer = Producer({"bootstrap.servers": proxy.bootstrap})
    for number in range(30):
        producer.produce(topic, str(number).encode(), partition=number % 3)
    producer.flush(WAIT_S_MAX)
    with instance(proxy, format="binary") as one:
        one.post("subscription", {"topic_pattern": f"{topic[:-1]}."})
        assert len(set(one.values(30, accept=BINARY))) == 30
        assert one.get("subscription").json == {"topics": [topic]}
        assert one.get("assignments").json == at(topic, 0, 1, 2)


def test_positions(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    times = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]
    for each in times:
        proxy.post(f"{path}/records", {"value": {"type": "JSON", "data": each}, "timestamp": each})
    with instance(proxy) as one:
        assert one.post("assignments", at(topic, 0)).status == 204
        assert one.values(3) == times
        assert one.post("positions/beginning", at(topic, 0)).status == 204
        assert one.values(3) == times
        assert one.post("positions", {"offsets": [{"topic": topic, "partition": 0, "offset": 2}]}).status == 204
        assert one.values(1) == times[2:]
        timed = {"timestamps": [{"topic": topic, "partition": 0, "timestamp": "2026-01-01T12:00:00Z"}]}
        assert one.post("positions", timed).status == 204
        assert one.values(2) == times[1:]
        one.post("positions/beginning", at(topic, 0))
        assert one.post("positions/end", at(topic, 0)).status == 204
        proxy.produce(topic, ["last"])
        assert one.values(1) == ["last"]


def test_conflicts(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic)
    with instance(proxy, name="one", group=f"g-{topic}") as one:
        again = proxy.post(f"/consumers/{one.group}", {"name": "one"}, kind=V2)
        assert (again.status, again.code) == (409, 40902)
        assert one.get("records").code == 40903
        assert one.post("positions/end", at(topic, 0)).code == 40903
        one.post("subscription", {"topics": [topic]})
        assert one.post("assignments", at(topic, 0)).code == 40903
        assert one.post("subscription", {"topic_pattern": "x.*"}).code == 40903
        assert proxy.ask("DELETE", f"{one.path}/subscription").status == 204
        assert one.post("assignments", at(topic, 0)).status == 204


@pytest.mark.parametrize(
    ("host", "seen"),
    [
        ("proxy.example", "http://proxy.example"),
        ("[::1]:8082", "http://[::1]:8082"),
        ("user@evil.example", None),
        ("evil.example/path?", None),
        ("evil.example:80:81", None),
        ("", None),
    ],
)
def test_a_base_uri_is_made_of_a_plain_host_or_of_the_listener(proxy: Proxy, host: str, seen: str | None) -> None:
    group = f"g-{uuid4()}"
    made = proxy.post(f"/consumers/{group}", {"name": "one"}, kind=V2, headers={"Host": host})
    assert made.json["base_uri"] == f"{seen or proxy.url}/consumers/{group}/instances/one"
    assert proxy.ask("DELETE", f"/consumers/{group}/instances/one").status == 204


def test_what_is_advertised_stands_for_every_host(kafka: str) -> None:
    said = {"advertised.listeners": "https://proxy.example/kafka/,http://other"}
    with running_proxy(kafka, properties=said) as proxy:
        made = proxy.post("/consumers/g", {"name": "one"}, kind=V2, headers={"Host": "evil.example"})
        assert made.json["base_uri"] == "https://proxy.example/kafka/consumers/g/instances/one"
        found = proxy.get("/v3/clusters", headers={"Host": "evil.example"}).json
        assert found["metadata"]["self"] == "https://proxy.example/kafka/v3/clusters"


def test_what_an_instance_shows(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic)
    with instance(proxy) as one:
        one.post("assignments", at(topic, 0))
        refused = one.get("records", accept=BINARY)
        assert (refused.status, refused.code) == (406, 40601)
        assert one.get("records", accept="text/html").code == 406
        assert one.get("records").headers["content-type"] == JSON_V2
        producer = Producer({"bootstrap.servers": proxy.bootstrap})
        for each in (b"1", b"{no json", b"2"):
            producer.produce(topic, each)
        producer.flush(WAIT_S_MAX)
        found: list[Any] = []

        def look() -> bool:  # what is no JSON is told once, and is no wall
            answer = one.get("records?timeout=300")
            found.extend([each["value"] for each in answer.json] if answer.status == 200 else [answer.code])
            return len(found) == 3

        eventually(look)
        assert found == [1, 40801, 2]


def test_bytes_of_an_answer_have_a_limit(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic)
    proxy.produce(topic, ["x" * 98] * 10)  # 100 bytes each
    with instance(proxy) as one:
        one.post("assignments", at(topic, 0))
        sizes: list[int] = []

        def read() -> bool:
            sizes.append(len(one.get("records?max_bytes=350").json))
            return sum(sizes) == 10

        eventually(read)
        assert max(sizes) == 3
    with instance(proxy, **{"fetch.min.bytes": "1", "consumer.request.timeout.ms": "60000"}) as quick:
        quick.post("assignments", at(topic, 0))
        assert quick.get("records").json, "one record is enough for it"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"format": "xml"}, 42204),
        ({"auto.offset.reset": "middle"}, 42204),
        ({"auto.commit.enable": "maybe"}, 42204),
        ({"fetch.min.bytes": -7}, 40001),
        ({"name": "a/b"}, 42204),
        ({"name": ".."}, 42204),  # a client that tidies its paths would ask for the group
        ({"name": 7}, 422),
        ("{", 400),
    ],
)
def test_what_no_instance_can_be_made_of(proxy: Proxy, body: object, code: int) -> None:
    assert proxy.post("/consumers/g", body, kind=V2).code == code


def test_nobody_is_there(proxy: Proxy) -> None:
    one = Instance(proxy, "g", "nobody")
    answers = [one.get("records"), one.get("subscription"), one.post("offsets"), proxy.ask("DELETE", one.path)]
    assert {(each.status, each.code) for each in answers} == {(404, 40403)}


def test_instances_expire_and_there_are_only_so_many(kafka: str, topic: str) -> None:
    limits = {"consumer.instance.timeout.ms": 1_500, "consumer.instances.max": 2}
    with running_proxy(kafka, properties=limits) as proxy:
        for name in ("a", "b"):
            assert proxy.post("/consumers/g", {"name": name}, kind=V2).status == 200
        refused = proxy.post("/consumers/g", {"name": "c"}, kind=V2)
        assert (refused.status, refused.code) == (429, 42901)
        one = Instance(proxy, "g", "a")
        eventually(lambda: one.get("subscription").status == 200 and proxy.metric(EXPIRED) == 1)
        assert Instance(proxy, "g", "b").get("subscription").code == 40403
        assert proxy.post("/consumers/g", {"name": "c"}, kind=V2).status == 200


EXPIRED = "moldau_rest_consumer_instances_expired_total"
