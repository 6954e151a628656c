"""The names and labels that dashboards of other exporters ask for, in what a real monitor tells of a real cluster."""

from __future__ import annotations

import gzip
import time
import urllib.request
import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.monitors import READY_S_MAX, Service, file_of, running

RECORDS, COMMITTED = 20, 5
BROKER = ("broker_id", "address", "port", "rack_id")
# What is selected, grouped by, shown in a table or offered as a variable, by the dashboards that people have. KMinion's
# are 14012 to 14014 of Grafana's collection, kafka_exporter's are 721, 7589 and Strimzi's.
DASHBOARDS: dict[str, dict[str, tuple[str, ...]]] = {
    "burrow": {
        "burrow_kafka_consumer_lag_total": ("cluster", "consumer_group"),
        "burrow_kafka_consumer_status": ("cluster", "consumer_group"),
        "burrow_kafka_consumer_partition_lag": ("cluster", "consumer_group", "topic", "partition"),
        "burrow_kafka_consumer_current_offset": ("cluster", "consumer_group", "topic", "partition"),
        "burrow_kafka_topic_partition_status": ("cluster", "consumer_group", "topic", "partition"),
        "burrow_kafka_topic_partition_offset": ("cluster", "topic", "partition"),
    },
    "kafka_exporter": {
        "kafka_brokers": (),
        "kafka_broker_info": ("id", "address"),
        "kafka_topic_partitions": ("topic",),
        "kafka_topic_partition_current_offset": ("topic", "partition"),
        "kafka_topic_partition_oldest_offset": ("topic", "partition"),
        "kafka_topic_partition_in_sync_replica": ("topic", "partition"),
        "kafka_topic_partition_leader": ("topic", "partition"),
        "kafka_topic_partition_leader_is_preferred": ("topic", "partition"),
        "kafka_topic_partition_replicas": ("topic", "partition"),
        "kafka_topic_partition_under_replicated_partition": ("topic", "partition"),
        "kafka_consumergroup_current_offset": ("consumergroup", "topic", "partition"),
        "kafka_consumergroup_current_offset_sum": ("consumergroup", "topic"),
        "kafka_consumergroup_lag": ("consumergroup", "topic", "partition"),
        "kafka_consumergroup_lag_sum": ("consumergroup", "topic"),
        "kafka_consumergroup_members": ("consumergroup",),
    },
    "kafka-lag-exporter": {
        **{
            f"kafka_consumergroup_group_{each}": (
                "cluster_name", "group", "topic", "partition", "member_host", "consumer_id", "client_id",
            )
            for each in ("offset", "lag", "lag_seconds")
        },
        **{f"kafka_consumergroup_group_{each}": ("cluster_name", "group")
           for each in ("max_lag", "max_lag_seconds", "sum_lag")},
        "kafka_consumergroup_group_topic_sum_lag": ("cluster_name", "group", "topic"),
        "kafka_partition_latest_offset": ("cluster_name", "topic", "partition"),
        "kafka_partition_earliest_offset": ("cluster_name", "topic", "partition"),
        "kafka_consumergroup_poll_time_ms": ("cluster_name",),
    },
    "KMinion, cluster": {
        "kminion_exporter_up": ("version",),
        "kminion_exporter_offset_consumer_records_consumed_total": (),
        "kminion_kafka_cluster_info": ("cluster_version", "broker_count", "controller_id", "cluster_id"),
        "kminion_kafka_broker_info": (*BROKER, "is_controller"),
        "kminion_kafka_broker_log_dir_size_total_bytes": BROKER,
        "kminion_kafka_topic_high_water_mark_sum": ("topic_name",),
        "kminion_kafka_consumer_group_offset_commits_total": ("group_id",),
    },
    "KMinion, topics": {
        "kminion_kafka_topic_info": ("topic_name", "partition_count", "replication_factor", "cleanup_policy"),
        "kminion_kafka_topic_low_water_mark_sum": ("topic_name",),
        "kminion_kafka_topic_log_dir_size_total_bytes": ("topic_name",),
        "kminion_kafka_topic_partition_high_water_mark": ("topic_name", "partition_id"),
        "kminion_kafka_topic_partition_low_water_mark": ("topic_name", "partition_id"),
    },
    "KMinion, groups": {
        "kminion_kafka_consumer_group_info": ("group_id", "protocol", "protocol_type", "state", "coordinator_id"),
        "kminion_kafka_consumer_group_members": ("group_id",),
        "kminion_kafka_consumer_group_empty_members": ("group_id",),
        "kminion_kafka_consumer_group_topic_members": ("group_id", "topic_name"),
        "kminion_kafka_consumer_group_topic_assigned_partitions": ("group_id", "topic_name"),
        "kminion_kafka_consumer_group_topic_offset_sum": ("group_id", "topic_name"),
        "kminion_kafka_consumer_group_topic_partition_lag": ("group_id", "topic_name", "partition_id"),
        "kminion_kafka_consumer_group_topic_lag": ("group_id", "topic_name"),
    },
}  # fmt: skip

Samples = dict[str, list[tuple[dict[str, str], float]]]


def scraped(service: Service) -> Samples:
    code, text = service.ask("/metrics")
    assert code == 200
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def value(samples: Samples, name: str, **labels: str) -> float:
    (found,) = [number for each, number in samples[name] if labels.items() <= each.items()]
    return found


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    """Of one partition, so that a second member of a group gets none."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"cleanup.policy": "compact,delete"}
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(20)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(name, key=str(number), value=b"x" * 100)
    assert producer.flush(20) == 0
    return name


@pytest.fixture(scope="module")
def group(bootstrap: str, topic: str) -> Iterator[str]:
    """With two members; the one that has the partition has committed."""
    name = f'billing "{uuid.uuid4().hex[:8]}"'
    settings = {"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False}
    members = [Consumer({**settings, "client.id": f"member-{number}"}) for number in range(2)]
    try:
        assigned: dict[str, list[TopicPartition]] = {}
        for number, member in enumerate(members):
            told = partial(assigned.__setitem__, str(number))
            member.subscribe([topic], on_assign=lambda _, places, told=told: told(places))
        deadline_s = time.monotonic() + READY_S_MAX
        while len(assigned) < len(members) or sum(map(len, assigned.values())) != 1:
            for member in members:
                member.poll(0.1)
            assert time.monotonic() < deadline_s
        owners = [member for member in members if member.assignment()]
        (place,) = owners[0].assignment()
        for place.offset in (COMMITTED - 1, COMMITTED):
            owners[0].commit(offsets=[place], asynchronous=False)
        yield name
    finally:
        for member in members:
            member.close()


@pytest.fixture(scope="module")
def service(bootstrap: str, group: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two commits are a full window here: Burrow tells of partitions with such only."""
    more = "[rules]\nintervals = 2\nmin-distance = 0"
    folder = tmp_path_factory.mktemp("monitor")
    with running(bootstrap, "--config", file_of(folder, bootstrap, group, more)) as found:
        yield found


@pytest.fixture(scope="module")
def samples(service: Service) -> Samples:
    """Once the group's window is full."""
    deadline_s = time.monotonic() + READY_S_MAX
    while "burrow_kafka_consumer_current_offset" not in (found := scraped(service)):
        assert time.monotonic() < deadline_s, sorted(found)
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_a_dashboard_finds_all_that_it_asks_for(samples: Samples, dashboard: str) -> None:
    missing = {}
    for name, labels in DASHBOARDS[dashboard].items():
        found = samples.get(name, [])
        if not found or not all(set(labels) <= each.keys() for each, _ in found):
            missing[name] = [sorted(each) for each, _ in found[:1]]
    assert missing == {}


def test_kminions_numbers_are_those_of_the_cluster(samples: Samples, group: str, topic: str) -> None:
    metric = "kminion_kafka_consumer_group"
    of_topic = {"group_id": group, "topic_name": topic}
    assert value(samples, f"{metric}_members", group_id=group) == 2
    assert value(samples, f"{metric}_empty_members", group_id=group) == 1
    assert value(samples, f"{metric}_topic_members", **of_topic) == 1
    assert value(samples, f"{metric}_topic_assigned_partitions", **of_topic) == 1
    assert value(samples, f"{metric}_topic_offset_sum", **of_topic) == COMMITTED
    assert value(samples, f"{metric}_topic_lag", **of_topic) == RECORDS - COMMITTED
    assert value(samples, f"{metric}_offset_commits_total", group_id=group) >= 1
    (info,) = [each for each, stable in samples[f"{metric}_info"] if stable == 1]
    assert (info["state"], info["protocol_type"], info["protocol"]) == ("Stable", "consumer", "range")
    (about,) = [each for each, _ in samples["kminion_kafka_topic_info"] if each["topic_name"] == topic]
    assert (about["partition_count"], about["replication_factor"]) == ("1", "1")
    assert set(about["cleanup_policy"].split(",")) == {"compact", "delete"}
    assert value(samples, "kminion_kafka_topic_high_water_mark_sum", topic_name=topic) == RECORDS
    assert value(samples, "kminion_kafka_topic_low_water_mark_sum", topic_name=topic) == 0
    assert value(samples, "kminion_kafka_topic_log_dir_size_total_bytes", topic_name=topic) > RECORDS * 100
    assert value(samples, "kminion_kafka_broker_log_dir_size_total_bytes") > RECORDS * 100
    ((cluster, _),) = samples["kminion_kafka_cluster_info"]
    assert (cluster["cluster_version"], cluster["broker_count"]) == ("v4.3", "1")
    assert value(samples, "kminion_exporter_offset_consumer_records_consumed_total") >= 1
    assert value(samples, "kminion_exporter_up") == 1
    free, whole = (value(samples, f"moldau_cluster_log_dir_{each}_bytes") for each in ("usable", "volume"))
    assert 0 < free < whole


def test_who_takes_gzip_gets_the_same_in_a_tenth(service: Service) -> None:
    def asked(accepts: str) -> tuple[str | None, bytes]:
        request = urllib.request.Request(f"{service.url}/metrics", headers={"Accept-Encoding": accepts})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            return answer.headers["Content-Encoding"], answer.read()

    coding, packed = asked("deflate, gzip;q=0.8")
    assert coding == "gzip"
    refused, plain = asked("gzip;q=0")
    assert refused is None
    names = [{line.partition(b" ")[0] for line in text.splitlines()} for text in (gzip.decompress(packed), plain)]
    assert names[0] == names[1]
    assert len(packed) < len(plain) / 4
