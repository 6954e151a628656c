"""A proxy that is told to end, while clients are there; and a cluster that loses a broker."""

from __future__ import annotations

import http.client
import json
import time
from uuid import uuid4

import pytest

import moldau
from tests import apache_kafka
from tests.clusters import running_cluster
from tests.rest.proxies import WAIT_S_MAX, eventually, running_proxy
from tests.rest.reading import records

pytestmark = pytest.mark.xdist_group("rest")


def test_open_streams_do_not_hold_up_the_end(bootstrap: str) -> None:
    with running_proxy(bootstrap) as proxy:
        path = proxy.create_topic(f"t-{uuid4()}")
        reading = http.client.HTTPConnection(*proxy.address, timeout=WAIT_S_MAX)
        reading.request("GET", f"{path}/records", headers={"Accept": "text/event-stream"})
        events = reading.getresponse()
        assert events.readline().startswith(b"retry")
        writing = http.client.HTTPConnection(*proxy.address, timeout=WAIT_S_MAX)
        writing.putrequest("POST", f"{path}/records")
        writing.putheader("Content-Type", "application/json")
        writing.putheader("Transfer-Encoding", "chunked")
        writing.endheaders(b'1a\r\n{"value":{"type":"JSON"}}  \r\n'.replace(b"1a", b"1b"))
        answer = writing.getresponse()
        assert json.loads(answer.readline())["error_code"] == 200
        assert proxy.process.stdin is not None
        began_s = time.monotonic()
        proxy.process.stdin.close()
        assert events.read().endswith(b"\n"), "it ends, and is not broken off"
        assert answer.read() == b""
        proxy.process.wait(WAIT_S_MAX)
        assert time.monotonic() - began_s < 4, "the five seconds for requests under way are not waited for"
        reading.close()
        writing.close()


def test_it_is_not_ready_while_no_broker_answers() -> None:
    with moldau.run() as broker, running_proxy(broker.bootstrap_servers) as proxy:
        assert (proxy.get("/ready").status, proxy.get("/health").status) == (200, 200)
        broker.stop()
        eventually(lambda: proxy.get("/ready").status == 503)
        assert proxy.get("/ready").json["reasons"] == [f"no broker answers at {broker.bootstrap_servers}"]
        assert proxy.get("/health").status == 200
        began_s = time.monotonic()
        assert {proxy.get("/ready").status for _ in range(5)} == {503}
        assert time.monotonic() - began_s < 5, "one look serves all who ask"
        broker.restart()
        eventually(lambda: proxy.get("/ready").status == 200)


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["moldau", "apache"])
def test_what_was_answered_outlives_a_broker(kind: str) -> None:
    if kind == "apache" and not apache_kafka.available():
        pytest.skip("needs Java and Apache Kafka's jars")
    properties = {"default.replication.factor": 3, "min.insync.replicas": 2, "offsets.topic.replication.factor": 3}
    with (
        running_cluster(kind, properties=properties) as cluster,
        running_proxy(cluster.bootstrap_servers) as proxy,
    ):
        topic = f"t-{uuid4()}"
        path = proxy.create_topic(topic, partitions=6)
        answered: set[str] = set()
        for number in range(60):
            if number == 20:
                cluster.kill(1)
            body = json.dumps({"value": {"type": "STRING", "data": str(number)}})
            (line,) = proxy.post(f"{path}/records", body).lines
            if line["error_code"] == 200:
                answered.add(str(number))
        assert len(answered) > 40
        found = records(cluster.bootstrap_servers, topic, len(answered))
        assert answered <= {each.value().decode() for each in found}
        streamed = proxy.get(f"{path}/records?from=beginning&until=end").lines
        assert answered <= {each["value"]["data"] for each in streamed}
        replicas = eventually(lambda: proxy.get(f"{path}/partitions/0/replicas").json["data"])
        assert len(replicas) == 3
