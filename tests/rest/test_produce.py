"""Records over HTTP, as confluent-kafka finds them in the topic."""

from __future__ import annotations

import base64
import http.client
import json

import pytest

from tests.rest.proxies import BINARY, JSON_V2, WAIT_S_MAX, Proxy
from tests.rest.reading import records

pytestmark = pytest.mark.xdist_group("rest")


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_v2_binary(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic, partitions=2)
    wanted: list[dict[str, object]] = [
        {"key": encoded(b"k"), "value": encoded(b"\x00\xff")},
        {"value": None, "key": encoded(b"gone")},
    ]
    answer = proxy.post(f"/topics/{topic}", {"records": [{**each, "partition": 1} for each in wanted]}, kind=BINARY)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/vnd.kafka.v2+json"
    assert answer.json == {
        "offsets": [{"partition": 1, "offset": each, "error_code": None, "error": None} for each in (0, 1)],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    found = records(proxy.bootstrap, topic, 2)
    assert [(each.key(), each.value()) for each in found] == [(b"k", b"\x00\xff"), (b"gone", None)]


def test_v2_json_keeps_every_digit(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic)
    body = b'{"records":[{"key":"k","value":{"n": 12345678901234567890123, "x": 1.10, "t": "\xc3\xa9"}}]}'
    assert proxy.post(f"/topics/{topic}/partitions/0", body, kind=JSON_V2).json["offsets"][0]["offset"] == 0
    (record,) = records(proxy.bootstrap, topic, 1)
    assert record.key() == b'"k"'
    assert record.value() == '{"n":12345678901234567890123,"x":1.10,"t":"é"}'.encode()


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        (BINARY, {"records": [{"value": "%%%"}]}, 400, 400),
        (BINARY, {"records": [{"value": 1}]}, 400, 400),
        (BINARY, {"records": []}, 422, 422),
        (BINARY, {}, 422, 422),
        (BINARY, "{", 400, 400),
        (BINARY, "", 422, 42206),
        ("application/json", {"records": [{"value": "aGk="}]}, 415, 415),
        ("application/vnd.kafka.avro.v2+json", {"records": [{"value": 1}]}, 422, 42202),
        ("application/vnd.kafka.avro.v2+json", {"records": [{"key": 1}]}, 422, 42201),
        ("application/vnd.kafka.avro.v2+json", {"value_schema": '"int"', "records": [{"value": 1}]}, 422, 42207),
    ],
)
def test_v2_refuses(proxy: Proxy, topic: str, kind: str, body: object, status: int, code: int) -> None:
    proxy.create_topic(topic)
    answer = proxy.post(f"/topics/{topic}", body, kind=kind)
    assert (answer.status, answer.code) == (status, code)


def test_v2_where_nothing_is(proxy: Proxy, topic: str) -> None:
    body = {"records": [{"value": "aGk="}]}
    assert proxy.post(f"/topics/{topic}", body, kind=BINARY).code == 40401
    proxy.create_topic(topic)
    assert proxy.post(f"/topics/{topic}/partitions/7", body, kind=BINARY).code == 40402
    (offset,) = proxy.post(f"/topics/{topic}", {"records": [{"value": "aGk=", "partition": 7}]}, kind=BINARY).json[
        "offsets"
    ]
    assert offset == {"partition": None, "offset": None, "error_code": 40402, "error": "Partition not found."}


def test_v3_answers_each_record_in_a_line(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic, partitions=2)
    wanted = [
        {
            "partition_id": 1,
            "key": {"type": "STRING", "data": "é"},
            "value": {"type": "JSON", "data": {"a": [1, None]}},
            "headers": [{"name": "h", "value": encoded(b"\x01")}, {"name": "empty"}],
            "timestamp": "2026-02-05T19:14:42Z",
        },
        {"value": {"type": "BINARY", "data": "no base64"}},
        {"partition_id": 9, "value": {"type": "STRING", "data": "x"}},
        {"value": {"type": "AVRO", "data": 1, "schema": '"int"'}},
        {"partition_id": 1},
    ]
    answer = proxy.post(f"{path}/records", " ".join(map(json.dumps, wanted)))
    assert answer.status == 200
    assert [each["error_code"] for each in answer.lines] == [200, 400, 40402, 42207, 200]
    first, last = answer.lines[0], answer.lines[-1]
    assert first == {
        "error_code": 200,
        "cluster_id": proxy.cluster.rpartition("/")[2],
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2026-02-05T19:14:42Z",
        "key": {"type": "STRING", "size": 2},
        "value": {"type": "JSON", "size": 14},
    }
    assert (last["offset"], "key" in last, "value" in last) == (1, False, False)
    record, empty = records(proxy.bootstrap, topic, 2)
    assert (record.key(), record.value(), record.headers()) == (
        "é".encode(),
        b'{"a":[1,null]}',
        [("h", b"\x01"), ("empty", None)],
    )
    assert record.timestamp() == (1, 1_770_318_882_000)
    assert (empty.key(), empty.value()) == (None, None)


def test_v3_streams_both_ways_at_once(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    connection = http.client.HTTPConnection(*proxy.address, timeout=WAIT_S_MAX)
    connection.putrequest("POST", f"{path}/records")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    answer = None
    for number in range(3):  # each is answered before the next one is sent
        chunk = json.dumps({"value": {"type": "JSON", "data": number}}).encode()
        connection.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        answer = answer or connection.getresponse()
        assert json.loads(answer.readline())["offset"] == number
    connection.send(b"0\r\n\r\n")
    assert answer is not None
    assert answer.read() == b""
    connection.close()


def test_v3_says_where_a_stream_is_no_json(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    answer = proxy.post(f"{path}/records", b'{"value":{"type":"JSON","data":1}} } {"value":null}')
    assert [each["error_code"] for each in answer.lines] == [200, 400]
    answer = proxy.post(f"{path}/records", b'{"value": tru} {"value":{"type":"JSON","data":2}}')
    assert [each["error_code"] for each in answer.lines] == [400, 200]


def test_v3_batch(proxy: Proxy, topic: str) -> None:
    path = proxy.create_topic(topic)
    entries = [
        {"id": "a", "value": {"type": "STRING", "data": "x"}},
        {"id": "b", "partition_id": -1, "value": {"type": "STRING", "data": "y"}},
    ]
    answer = proxy.post(f"{path}/records:batch", {"entries": entries})
    assert answer.status == 207
    assert [(each["id"], each["offset"]) for each in answer.json["successes"]] == [("a", 0)]
    assert [(each["id"], each["error_code"]) for each in answer.json["failures"]] == [("b", 40402)]
    for wrong in ([], [{"id": 1}], [{"id": "a"}, {"id": "a"}], [{"id": str(each)} for each in range(11)]):
        refused = proxy.post(f"{path}/records:batch", {"entries": wrong})
        assert (refused.status, refused.code) == (422, 42208)


def test_a_key_stays_in_the_partition_that_java_gives_it(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic, partitions=10)
    wanted = [{"key": encoded(str(each).encode()), "value": None} for each in range(20)]
    found = proxy.post(f"/topics/{topic}", {"records": wanted}, kind=BINARY).json["offsets"]
    java = [murmur2(str(each).encode()) % 10 for each in range(20)]
    assert [each["partition"] for each in found] == java


def murmur2(data: bytes) -> int:
    """By Java's partitioner, without its sign bit."""
    whole, mask = 0x5BD1E995, 0xFFFFFFFF
    found = (0x9747B28C ^ len(data)) & mask
    for at in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * whole & mask
        found = (found * whole & mask) ^ ((k ^ k >> 24) * whole & mask)
    rest = data[len(data) // 4 * 4 :]
    if rest:
        found = (found ^ int.from_bytes(rest, "little")) * whole & mask
    found = (found ^ found >> 13) * whole & mask
    return (found ^ found >> 15) & 0x7FFFFFFF
