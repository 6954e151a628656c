"""Topics read as streams: server-sent events and JSON lines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.rest.proxies import WAIT_S_MAX, Proxy, eventually

pytestmark = pytest.mark.xdist_group("rest")

EVENTS, LINES = "text/event-stream", "application/x-ndjson"
STREAMS = "moldau_rest_streams"


class Stream:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def event(self) -> dict[str, str]:
        """The next one that is no heartbeat."""
        found: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            if line == "\n" and found:
                return found
            if line != "\n":
                name, _, value = line.rstrip("\n").partition(":")
                if name:
                    found[name] = value.removeprefix(" ")

    def record(self) -> tuple[str, Any]:
        event = self.event()
        while "retry" in event:
            event = self.event()
        assert "event" not in event, event
        return event["id"], json.loads(event["data"])


@contextmanager
def stream(proxy: Proxy, path: str, accept: str = EVENTS, **headers: str) -> Iterator[Stream]:
    connection = http.client.HTTPConnection(*proxy.address, timeout=WAIT_S_MAX)
    connection.request("GET", path, headers={"Accept": accept, **headers})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    assert answer.headers["content-type"] == accept
    try:
        yield Stream(answer)
    finally:
        answer.close()
        connection.close()


def test_events_from_the_beginning_and_as_they_come(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    value = {"type": "JSON", "data": {"n": 12345678901234567890123}}
    wanted = {"key": {"type": "STRING", "data": "k"}, "value": value, "headers": [{"name": "h", "value": "aGk="}]}
    body = json.dumps({**wanted, "timestamp": "2026-01-01T00:00:00Z"})
    proxy.post(f"{path}/records", body)
    with stream(proxy, f"{path}/records?from=beginning") as read:
        assert read.record() == (
            "0:1",
            {
                "topic_name": topic, "partition_id": 0, "offset": 0, "timestamp": "2026-01-01T00:00:00Z",
                "timestamp_type": "CREATE_TIME", "headers": [{"name": "h", "value": "aGk="}],
                "key": {"type": "STRING", "data": "k"}, "value": value,
            },
        )  # fmt: skip
        proxy.produce(topic, ["live"])
        assert read.record()[1]["value"] == {"type": "STRING", "data": '"live"'}


def test_a_stream_goes_on_where_it_was_left(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic, partitions=2)
    for partition in (0, 1):
        proxy.produce(topic, [f"{partition}-{each}" for each in range(3)], partition=partition)
    seen: list[str] = []
    last: dict[str, str] = {}
    for _ in range(3):
        with stream(proxy, f"{path}/records?from=beginning&value_format=json", **last) as read:
            for _ in range(2):
                at, record = read.record()
                seen.append(record["value"]["data"])
                last = {"Last-Event-ID": at}
    assert sorted(seen) == [f"{partition}-{each}" for partition in (0, 1) for each in range(3)]
    assert last == {"Last-Event-ID": "0:3,1:3"}


def test_lines_end_where_they_are_told_to(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic, partitions=2)
    proxy.produce(topic, [0, 1, 2], partition=0)
    proxy.produce(topic, [3], partition=1)

    def values(query: str) -> list[Any]:
        answer = proxy.get(f"{path}/records?value_format=json&{query}", accept=LINES)
        assert answer.status == 200, answer.content
        return sorted(each["value"]["data"] for each in answer.lines)

    assert values("from=beginning&until=end") == [0, 1, 2, 3]
    assert values("from=beginning&until=end&partitions=1") == [3]
    assert values("from=1&partitions=0&until=end") == [1, 2]
    assert values("from=beginning&limit=2&partitions=0") == [0, 1]
    assert values("from=end&timeout=500") == []
    assert values("from=2000-01-01T00:00:00Z&until=end") == [0, 1, 2, 3]
    assert values("from=@32503680000000&until=end") == []  # in the year 3000


def test_a_group_remembers(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    proxy.produce(topic, [0, 1, 2, 3])
    for wanted in ([0, 1], [2, 3]):
        answer = proxy.get(f"{path}/records?group={topic}&from=beginning&limit=2&value_format=json", accept=LINES)
        assert [each["value"]["data"] for each in answer.lines] == wanted


def test_values_say_what_they_are(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    producer = Producer({"bootstrap.servers": proxy.bootstrap})
    for each in (b'{"a":1}', b"text", b"\xff", b"{no json", None):
        producer.produce(topic, each)
    producer.flush(WAIT_S_MAX)

    def values(kind: str) -> list[Any]:
        query = f"from=beginning&until=end&value_format={kind}"
        return [each["value"] for each in proxy.get(f"{path}/records?{query}", accept=LINES).lines]

    assert values("auto") == [
        {"type": "JSON", "data": {"a": 1}}, {"type": "STRING", "data": "text"}, {"type": "BINARY", "data": "/w=="},
        {"type": "STRING", "data": "{no json"}, None,
    ]  # fmt: skip
    assert values("binary")[1] == {"type": "BINARY", "data": "dGV4dA=="}
    wrong = values("json")[1]
    assert (wrong["type"], wrong["data"]) == ("BINARY", "dGV4dA==")
    assert "no JSON" in wrong["error"]


def test_silence_has_heartbeats_and_a_client_that_goes_is_forgotten(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    before = proxy.metric(STREAMS)
    with stream(proxy, f"{path}/records") as read:
        lines = iter(read.answer.readline, b"")
        assert next(each for each in lines if each.startswith(b":")) == b": heartbeat\n"
        assert proxy.metric(STREAMS) == before + 1
    eventually(lambda: proxy.metric(STREAMS) == before)


def test_one_client_has_only_so_many_streams(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    eventually(lambda: proxy.metric(STREAMS) == 0)
    with (
        stream(proxy, f"{path}/records"), stream(proxy, f"{path}/records"), stream(proxy, f"{path}/records"),
        stream(proxy, f"{path}/records"), stream(proxy, f"{path}/records"),
    ):  # fmt: skip
        eventually(lambda: proxy.metric(STREAMS) == 5)
        assert proxy.get(f"{path}/records", accept=EVENTS).code == 42901
        assert proxy.get("/topics").status == 200
    eventually(lambda: proxy.metric(STREAMS) == 0)


def test_a_topic_that_goes_ends_its_streams(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    proxy.produce(topic, [1])
    with stream(proxy, f"{path}/records?from=beginning") as read:
        read.record()
        assert proxy.ask("DELETE", path).status == 204
        event = read.event()
        assert event["event"] == "error"
        assert json.loads(event["data"])["error_code"] in (40401, 40403)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("from=nowhere", 400), ("from=-7", 400), ("partitions=9", 40402), ("partitions=x", 400), ("limit=0", 400),
        ("limit=x", 400), ("timeout=-1", 400), ("value_format=xml", 400), ("until=noon", 400), ("isolation=x", 400),
        ("group=g&partitions=0", 400), ("group=g&from=7", 400), ("last_event_id=x", 400), ("group=", 400),
    ],
)  # fmt: skip
def test_what_cannot_be_read(proxy: Proxy, topic: str, query: str, code: int) -> None:
    path = proxy.create_topic(topic)
    assert proxy.get(f"{path}/records?{query}", accept=EVENTS).code == code


def test_what_is_not_there_cannot_be_read(proxy: Proxy, topic: str) -> None:
    assert proxy.get(f"{proxy.cluster}/topics/{topic}/records", accept=EVENTS).code == 40403
    assert proxy.get(f"/v3/clusters/other/topics/{topic}/records", accept=EVENTS).code == 404
    assert proxy.get(f"{proxy.cluster}/topics/{topic}/records", accept="text/html").code == 406
