"""From a push to what a page shows of it."""

from __future__ import annotations

import time

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from moldau.broker.telemetry.samples import Samples, open_payload, samples_of
from moldau.broker.telemetry.series import NO_ROOM, TOO_MANY, PushedSeries
from moldau.core.limits import TELEMETRY_ELEMENTS_MAX, TELEMETRY_SERIES_PER_CLIENT_MAX
from moldau.telemetry.metrics_data import MetricsDataReader
from moldau.wire.compression import compress
from moldau.wire.records import InvalidRecord
from tests.broker.telemetry.clients import client
from tests.telemetry.metrics import CUMULATIVE, attribute, pushed

LABELS = (
    'client_id="shop",client_instance_id="AAECAwQFBgcICQoLDA0ODw",'
    'client_software_name="apache-kafka-java",client_software_version="4.3.1"'
)
COUNTER, GAUGE = "org.apache.kafka.sent.total", "org.apache.kafka.lag"


def values(pushes: PushedSeries) -> dict[str, float]:
    return {series.text: series.value for each in pushes.all() for series in each.series.values()}


def take(pushes: PushedSeries, data: bytes, *, until_ms: int = 1_000, **of_client: object) -> None:
    whom = client(**of_client)  # type: ignore[arg-type]
    pushes.take(whom, samples_of(whom, data), until_ms=until_ms)


def test_deltas_are_added_and_gauges_replaced() -> None:
    pushes = PushedSeries()
    take(pushes, pushed(("sum", COUNTER, 5), ("gauge", GAUGE, 7.5), time_ns=1))
    take(pushes, pushed(("sum", COUNTER, 3), ("gauge", GAUGE, 2.5), time_ns=2))
    assert values(pushes) == {
        f"org_apache_kafka_sent_total{{{LABELS}}}": 8,
        f"org_apache_kafka_lag{{{LABELS}}}": 2.5,
    }


def test_a_push_that_is_repeated_counts_once() -> None:
    pushes = PushedSeries()
    for _ in range(2):
        take(pushes, pushed(("sum", COUNTER, 5), time_ns=1))
    assert [*values(pushes).values()] == [5]


def test_cumulative_sums_are_replaced() -> None:
    pushes = PushedSeries()
    for value in (5, 8):
        take(pushes, pushed(("sum", COUNTER, value), time_ns=value, temporality=CUMULATIVE))
    assert [*values(pushes).values()] == [8]


def test_attributes_are_labels_and_cannot_pretend_to_be_another_client() -> None:
    data = pushed(("gauge", GAUGE, 1), of_resource={"group_id": "g"}, of_points={"node.id": 3, "client_id": "other"})
    (sample,) = samples_of(client(), data).found
    assert sample.series == f'org_apache_kafka_lag{{{LABELS},group_id="g",node_id="3"}}'


def test_names_that_are_not_kafkas_stand_apart_from_the_brokers_own() -> None:
    names = ("kafka_server_brokertopicmetrics_bytesin", "up", "org.apache.kafkaesque")
    found = samples_of(client(), pushed(*(("gauge", each, 1) for each in names))).found
    assert [each.family for each in found] == [f"client_{each.replace('.', '_')}" for each in names]


def test_what_is_too_long_is_left_out_and_counted() -> None:
    assert samples_of(client(), pushed(("gauge", "x" * 1_000, 1))) == Samples([], 1)
    many = {f"a{each}": each for each in range(40)}
    assert samples_of(client(), pushed(("gauge", "x", 1), of_points=many)) == Samples([], 1)


def test_series_have_room_for_some() -> None:
    pushes = PushedSeries(series_max=3)
    take(pushes, pushed(*(("gauge", f"g{each}", 1) for each in range(5))))
    assert (pushes.count, pushes.left_out[NO_ROOM]) == (3, 2)
    pushes.expire(1_000)
    assert (pushes.count, pushes.clients) == (0, {})
    whole, half = PushedSeries(), TELEMETRY_SERIES_PER_CLIENT_MAX // 2 + 1
    for part in "ab":
        take(whole, pushed(*(("gauge", f"{part}{each}", 1) for each in range(half))))
    assert (whole.count, whole.left_out[TOO_MANY]) == (TELEMETRY_SERIES_PER_CLIENT_MAX, 2)


def test_what_a_client_pushes_no_more_is_forgotten() -> None:
    pushes = PushedSeries()
    take(pushes, pushed(("gauge", "revoked", 1), ("gauge", "kept", 1)), until_ms=1_000)
    take(pushes, pushed(("gauge", "kept", 1)), until_ms=1_500)
    pushes.expire(1_200)
    assert [each.partition("{")[0] for each in values(pushes)] == ["client_kept"]
    assert pushes.count == 1


def test_a_client_that_comes_by_another_connection_goes_on() -> None:
    pushes = PushedSeries()
    take(pushes, pushed(("sum", COUNTER, 5), time_ns=1), port=1)
    take(pushes, pushed(("sum", COUNTER, 5), time_ns=2), port=2)
    take(pushes, pushed(("sum", COUNTER, 5), time_ns=2), instance_id=b"b" * 16)
    assert [*values(pushes).values()] == [10, 5]


@pytest.mark.parametrize("codec", range(5))
def test_payloads_unfold_up_to_a_limit(codec: int) -> None:
    data = pushed(("gauge", GAUGE, 1)) * 50
    packed = bytes(compress(codec, data))
    assert open_payload(codec, packed, bytes_max=len(data)) == data
    if codec:
        with pytest.raises(InvalidRecord):
            open_payload(codec, packed, bytes_max=len(data) - 1)
        with pytest.raises(InvalidRecord):
            open_payload(codec, b"\xff\xfe" * 10, bytes_max=1_000)


def test_bytes_that_are_no_metrics_are_refused() -> None:
    with pytest.raises(InvalidRecord):
        samples_of(client(), b"\xff\xff")


def test_clients_that_nothing_is_shown_of_take_no_room() -> None:
    """A client may give itself another instance id for each push."""
    pushes = PushedSeries(series_max=1)
    for number in range(10):
        take(pushes, pushed(("gauge", "g", 1)), instance_id=number.to_bytes(16))
        take(pushes, pushed(("gauge", "x" * 1_000, 1)), instance_id=(100 + number).to_bytes(16))
    assert (len(pushes.clients), pushes.count) == (1, 1)


def test_attributes_of_a_resource_are_not_merged_with_each_of_its_points() -> None:
    """45,000 of them with 50,000 points, a push of 100 KB, took a thread six seconds."""
    data = MetricsData()
    resource = data.resource_metrics.add()
    resource.resource.attributes.extend(attribute(f"{each:05}", "") for each in range(45_000))
    points = resource.scope_metrics.add().metrics.add(name="h").gauge.data_points
    for _ in range(50_000):
        points.add(flags=0, as_int=0)
    began_s = time.thread_time()
    assert samples_of(client(), data.SerializeToString()) == Samples([], 50_000)
    reading_s = time.thread_time() - began_s
    began_s = time.thread_time()
    MetricsDataReader(TELEMETRY_ELEMENTS_MAX).read(data.SerializeToString())
    assert reading_s < 3 * (time.thread_time() - began_s), "most of it is reading"
