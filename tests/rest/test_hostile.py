"""One client that reads nothing, sends too much or never ends costs nobody else anything."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Producer

from tests.brokers import running_broker
from tests.rest.proxies import BINARY, JSON_V2, V2, Answer, Proxy, eventually, running_proxy

pytestmark = pytest.mark.xdist_group("rest")

MIB = 1 << 20
STREAMS = 16
STREAM_BYTES_MAX = 10 * MIB  # a consumer of librdkafka's with its threads, what it fetched ahead, and one batch


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    limits = {
        "streams.per.user.max": STREAMS,
        "request.body.max.bytes": MIB,
        "api.v3.produce.request.size.limit.max.bytes": 100_000,
    }
    broker = running_broker("moldau", properties={"auto.create.topics.enable": "false"})
    with broker as bootstrap, running_proxy(bootstrap, properties=limits) as running:
        yield running


def memory_bytes(proxy: Proxy) -> int:
    with open(f"/proc/{proxy.process.pid}/status") as status:
        line = next(each for each in status if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1_024


def connected(proxy: Proxy, head: str) -> socket.socket:
    found = socket.create_connection(proxy.address, timeout=30)
    found.sendall(head.replace("\n", "\r\n").encode())
    return found


def test_a_body_has_a_limit_before_it_is_there(proxy: Proxy) -> None:
    proxy.create_topic("small")
    with connected(
        proxy, f"POST /topics/small HTTP/1.1\nHost: x\nContent-Type: {BINARY}\nContent-Length: 1073741824\n\n"
    ) as one:
        assert b" 413 " in one.recv(1_000)
    assert proxy.post("/topics/small", b" " * (MIB + 1), kind=BINARY).code == 413
    assert proxy.get("/topics").status == 200


def test_a_stream_may_be_long_but_its_records_not(proxy: Proxy) -> None:
    path = proxy.create_topic("long")
    record = json.dumps({"value": {"type": "STRING", "data": "x" * 1_000}}).encode()
    before = memory_bytes(proxy)
    answer = proxy.post(f"{path}/records", record * 5_000)
    assert [each["error_code"] for each in answer.lines] == [200] * 5_000
    assert memory_bytes(proxy) - before < 60 * MIB
    answer = proxy.post(f"{path}/records", record + b'{"value":{"data":"' + b"x" * 200_000 + b'"}}')
    assert [each["error_code"] for each in answer.lines] == [200, 400]


def test_who_reads_no_answers_is_not_read_from(proxy: Proxy) -> None:
    """Two hundred megabytes are offered, and none of the answers is taken."""
    path = proxy.create_topic("unread")
    before = memory_bytes(proxy)
    chunk = json.dumps({"value": {"type": "STRING", "data": "x" * 200}}).encode() * 200
    framed = b"%x\r\n%b\r\n" % (len(chunk), chunk)
    head = f"POST {path}/records HTTP/1.1\nHost: x\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
    with connected(proxy, head) as one:
        one.settimeout(1)
        with pytest.raises(TimeoutError):
            send(one, framed, 200 * MIB)
        assert proxy.get("/topics").status == 200
        assert memory_bytes(proxy) - before < 100 * MIB
    eventually(lambda: proxy.metric("moldau_rest_http_requests_in_flight") == 1)  # this one


def send(to: socket.socket, content: bytes, size: int) -> None:
    sent = 0
    while sent < size:
        sent += to.send(content)


def test_who_reads_no_records_gets_no_more_of_them(proxy: Proxy) -> None:
    path = proxy.create_topic("plenty")
    for _ in range(60):
        proxy.produce("plenty", ["x" * 90_000] * 10)
    before = memory_bytes(proxy)
    with connected(proxy, f"GET {path}/records?from=beginning HTTP/1.1\nHost: x\nAccept: text/event-stream\n\n"):
        eventually(lambda: proxy.metric("moldau_rest_streams") == 1)
        began_s = time.monotonic()
        for _ in range(20):
            assert proxy.get("/topics").status == 200
        assert time.monotonic() - began_s < 10
        assert memory_bytes(proxy) - before < 60 * MIB
    eventually(lambda: proxy.metric("moldau_rest_streams") == 0)


def test_streams_that_nobody_reads_cost_little_and_give_it_back(proxy: Proxy) -> None:
    path = proxy.create_topic("large", partitions=2)
    producer = Producer({"bootstrap.servers": proxy.bootstrap})
    for at in range(48):
        producer.produce("large", b"x" * 900_000, partition=at % 2)
    assert producer.flush(30) == 0
    head = f"GET {path}/records?from=beginning HTTP/1.1\nHost: x\nAccept: text/event-stream\n\n"
    before = memory_bytes(proxy)
    with ExitStack() as unread:
        for _ in range(STREAMS):
            unread.enter_context(connected(proxy, head))
        eventually(lambda: proxy.metric("moldau_rest_streams") == STREAMS)
        assert settled_memory_bytes(proxy) - before < STREAMS * STREAM_BYTES_MAX
    eventually(lambda: proxy.metric("moldau_rest_streams") == 0)
    eventually(lambda: memory_bytes(proxy) - before < 2 * STREAM_BYTES_MAX)


def settled_memory_bytes(proxy: Proxy) -> int:
    """The most of a second in which it grew no more."""
    most, since_s = memory_bytes(proxy), time.monotonic()
    while time.monotonic() - since_s < 1:
        time.sleep(0.05)
        now = memory_bytes(proxy)
        if now > most + MIB:
            most, since_s = now, time.monotonic()
    return most


@pytest.mark.parametrize("depth", [100_000])
def test_nesting_is_no_way_in(proxy: Proxy, depth: int) -> None:
    path = proxy.create_topic(f"deep-{depth}")
    nested = b'{"value":{"type":"JSON","data":' + b"[" * depth + b"]" * depth + b"}}"
    assert proxy.post(f"{path}/records", nested[:90_000]).lines[0]["error_code"] == 400
    short = b'{"value":{"type":"JSON","data":' + b"[" * 40_000 + b"]" * 40_000 + b"}}"
    assert proxy.post(f"{path}/records", short).lines[0]["error_code"] in (200, 400)
    assert proxy.post(f"/topics/deep-{depth}", b"[" * depth, kind=JSON_V2).status in (400, 422)
    assert proxy.get("/topics").status == 200


@pytest.mark.parametrize("path", ["/%ff", "/topics/%ff", "/topics/a%2fb", "/v3/clusters/%00", "/consumers/%20/x"])
def test_paths_that_lead_nowhere(proxy: Proxy, path: str) -> None:
    assert proxy.get(path).status in (400, 404, 405)


def test_text_that_is_no_text(proxy: Proxy) -> None:
    path = proxy.create_topic("texts")
    for data in (b'"\\ud800"', b'"\xff"'):
        for kind in (b"STRING", b"JSON"):
            body = b'{"value":{"type":"' + kind + b'","data":' + data + b"}}"
            assert proxy.post(f"{path}/records", body).lines[0]["error_code"] in (200, 400)


@contextmanager
def crowd(ask: Callable[[], Answer], *statuses: int) -> Iterator[None]:
    """A hundred of a client's requests at a time."""
    is_over = threading.Event()
    found: set[int] = set()

    def run() -> None:
        while not is_over.is_set():
            found.add(ask().status)

    threads = [threading.Thread(target=run) for _ in range(100)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        is_over.set()
        for each in threads:
            each.join()
    assert found == {*statuses}


def made_instance(proxy: Proxy, group: str) -> str:
    made = proxy.post(f"/consumers/{group}", {"consumer.request.timeout.ms": 100}, kind=V2)
    path = f"/consumers/{group}/instances/{made.json['instance_id']}"
    wanted = {"partitions": [{"topic": "asked", "partition": 0}]}
    assert proxy.post(f"{path}/assignments", wanted, kind=V2).status == 204
    return path


def is_answered_soon(proxy: Proxy, path: str) -> bool:
    """Each time for a second, in which all of a crowd asks: where it held the threads one took three and more."""
    began_s = time.monotonic()
    longest_s = 0.0
    while (asked_s := time.monotonic()) < began_s + 1:
        assert proxy.get(path).status == 200
        longest_s = max(longest_s, time.monotonic() - asked_s)
    return longest_s < 2


def test_a_crowd_at_one_instance_keeps_nobody_from_another(proxy: Proxy) -> None:
    proxy.create_topic("asked")
    one, other = made_instance(proxy, "one"), made_instance(proxy, "other")
    with crowd(lambda: proxy.get(f"{one}/records"), 200, 404):
        assert is_answered_soon(proxy, f"{other}/assignments")
        assert proxy.ask("DELETE", one).status == 204, "which all who wait for it hear of"


def test_a_crowd_that_writes_nowhere_keeps_nobody_from_asking(proxy: Proxy) -> None:
    with crowd(lambda: proxy.post("/topics/nowhere.", {"records": [{"value": "AA=="}]}, kind=BINARY), 404):
        assert is_answered_soon(proxy, "/topics")


NO_NAME = "a%00b"


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status"),
    [
        ("POST", f"/topics/{NO_NAME}", {"records": [{"value": 1}]}, JSON_V2, 400),
        ("POST", f"{{cluster}}/topics/{NO_NAME}/records", {}, "application/json", 400),
        ("GET", f"{{cluster}}/topics/named/records?group={NO_NAME}", None, V2, 400),
        ("GET", f"{{cluster}}/topics/named/records?timeout={'0' * 5_000}", None, V2, 400),
        ("POST", f"/consumers/{NO_NAME}", {}, V2, 400),
        ("POST", "{instance}/subscription", {"topics": ["a\0b"]}, V2, 422),
        ("POST", "{instance}/offsets", {"offsets": [{"topic": "a\0b", "partition": 0, "offset": 1}]}, V2, 422),
        ("POST", "{cluster}/topics", {"topic_name": "x" * 40_000}, "application/json", 400),
        (
            "POST",
            "{cluster}/topics/named/configs:alter",
            {"data": [{"name": "retention.ms", "value": "1" * 40_000}]},
            "application/json",
            400,
        ),
    ],
)
def test_names_that_no_message_can_carry(
    proxy: Proxy, method: str, path: str, body: object, kind: str, status: int
) -> None:
    """librdkafka cuts a name at a zero character and takes what is left, and strings have 32,767 bytes at most."""
    if "named" in path:
        proxy.post(f"{proxy.cluster}/topics", {"topic_name": "named"})
    if "{instance}" in path:
        made = proxy.post("/consumers/g", {}, kind=V2).json["instance_id"]
        path = path.replace("{instance}", f"/consumers/g/instances/{made}")
    answer = proxy.ask(method, path.replace("{cluster}", proxy.cluster), body, kind=kind)
    assert (answer.status, len(answer.content) < 300) == (status, True), answer.content
