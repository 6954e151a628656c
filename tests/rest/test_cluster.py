"""The cluster as v3's resources, and as v2 lists it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests import apache_kafka
from tests.brokers import running_broker
from tests.rest.proxies import Proxy, eventually, running_proxy

pytestmark = pytest.mark.xdist_group("rest")


def linked(proxy: Proxy, resource: Any) -> None:
    """A resource is what its own link leads to, and its links lead somewhere."""
    path = resource["metadata"]["self"].removeprefix(proxy.url)
    assert proxy.get(path).json == resource
    for value in resource.values():
        if isinstance(value, dict) and "related" in value:
            assert proxy.get(value["related"].removeprefix(proxy.url)).status in (200, 404)


def listed(proxy: Proxy, path: str, kind: str) -> list[Any]:
    answer = proxy.get(f"{proxy.cluster}/{path}")
    assert answer.status == 200, answer.content
    assert answer.json["kind"] == f"{kind}List"
    assert answer.json["metadata"] == {"self": f"{proxy.url}{proxy.cluster}/{path}", "next": None}
    assert {each["kind"] for each in answer.json["data"]} <= {kind}
    found: list[Any] = answer.json["data"]
    return found


def test_clusters_and_brokers(proxy: Proxy) -> None:
    cluster = proxy.get(proxy.cluster).json
    assert cluster["metadata"]["resource_name"] == f"crn:///kafka={cluster['cluster_id']}"
    assert proxy.get(cluster["controller"]["related"].removeprefix(proxy.url)).json["kind"] == "KafkaBroker"
    brokers = listed(proxy, "brokers", "KafkaBroker")
    linked(proxy, brokers[0])
    assert sorted(f"{each['host']}:{each['port']}" for each in brokers) == sorted(proxy.bootstrap.split(","))
    assert proxy.get("/brokers").json == {"brokers": [each["broker_id"] for each in brokers]}
    assert proxy.get(f"{proxy.cluster}/brokers/77").code == 404
    assert proxy.get("/v3/clusters/other").code == 404


def test_topics_come_grow_and_go(proxy: Proxy, topic: str) -> None:
    wanted = {"topic_name": topic, "partitions_count": 2, "replication_factor": 1}
    tried = proxy.post(f"{proxy.cluster}/topics", {**wanted, "validate_only": True})
    assert (tried.status, tried.json["partitions_count"]) == (200, 2)
    assert proxy.get(f"{proxy.cluster}/topics/{topic}").code == 40403
    made = proxy.post(f"{proxy.cluster}/topics", {**wanted, "configs": [{"name": "retention.ms", "value": "7"}]})
    assert (made.status, made.headers["location"]) == (201, made.json["metadata"]["self"])
    eventually(lambda: proxy.get(f"{proxy.cluster}/topics/{topic}").status == 200)
    linked(proxy, made.json)
    assert made.json in listed(proxy, "topics", "KafkaTopic")
    assert topic in proxy.get("/topics").json
    assert proxy.post(f"{proxy.cluster}/topics", wanted).code == 40002
    grown = proxy.ask("PATCH", f"{proxy.cluster}/topics/{topic}", {"partitions_count": 3})
    assert (grown.status, grown.json["partitions_count"]) == (200, 3)
    assert proxy.ask("PATCH", f"{proxy.cluster}/topics/{topic}", {"partitions_count": 1}).code == 40002
    assert proxy.ask("DELETE", f"{proxy.cluster}/topics/{topic}").status == 204
    eventually(lambda: proxy.get(f"{proxy.cluster}/topics/{topic}").status == 404)
    assert proxy.ask("DELETE", f"{proxy.cluster}/topics/{topic}").code == 40403


@pytest.mark.parametrize(
    "body",
    [
        {"topic_name": "a b"},
        {"topic_name": "t-x", "replication_factor": 9},
        {"topic_name": "t-x", "partitions_count": 0},
        {"topic_name": "t-x", "replication_factor": 70_000},
        {"topic_name": "t-x", "replicas_assignments": {"5": [0]}},
        {"topic_name": "t-x", "configs": [{"name": "no.such.key", "value": "1"}]},
        {"topic_name": "t-x", "partitions_count": "many"},
        {},
    ],
)
def test_what_no_topic_can_be_made_of(proxy: Proxy, body: object) -> None:
    assert proxy.post(f"{proxy.cluster}/topics", body).status == 400


def test_partitions_and_replicas(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic, partitions=2)
    proxy.produce(topic, [1, 2, 3], partition=1)
    partitions = listed(proxy, f"topics/{topic}/partitions", "KafkaPartition")
    assert [each["partition_id"] for each in partitions] == [0, 1]
    linked(proxy, partitions[1])
    replicas = listed(proxy, f"topics/{topic}/partitions/1/replicas", "KafkaReplica")
    (replica,) = (each for each in replicas if each["is_leader"])
    linked(proxy, replica)
    assert {each["is_in_sync"] for each in replicas} == {True}
    assert replica in listed(proxy, f"brokers/{replica['broker_id']}/partition-replicas", "KafkaReplica")
    offsets = proxy.get(f"{proxy.cluster}/topics/{topic}/partitions/1/offset").json
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 3)
    assert proxy.get(f"/topics/{topic}/partitions/1/offsets").json == {"beginning_offset": 0, "end_offset": 3}
    broker = replica["broker_id"]
    each_one = [
        {"broker": each["broker_id"], "leader": each["broker_id"] == broker, "in_sync": True} for each in replicas
    ]
    shown = {"partition": 1, "leader": broker, "replicas": each_one}
    assert proxy.get(f"/topics/{topic}/partitions/1").json == shown
    assert proxy.get(f"/topics/{topic}").json["partitions"][1] == shown
    assert listed(proxy, f"topics/{topic}/partitions/-/reassignment", "KafkaReassignment") == []
    assert listed(proxy, "topics/-/partitions/-/reassignment", "KafkaReassignment") == []
    for path in ("partitions/7", "partitions/7/replicas", "partitions/1/replicas/77", "partitions/1/reassignment"):
        assert proxy.get(f"{proxy.cluster}/topics/{topic}/{path}").code == 404
    assert proxy.get(f"/topics/{topic}/partitions/7").code == 40402
    assert proxy.get(f"/topics/{topic}x/partitions").code == 40401
    assert proxy.get(f"/topics/{topic}/partitions/x").code == 404


def test_configurations(proxy: Proxy, topic: str) -> None:
    path = f"{proxy.create_topic(topic, retention_ms='1000')}/configs"
    entry = proxy.get(f"{path}/retention.ms").json
    assert (entry["value"], entry["is_default"], entry["source"]) == ("1000", False, "DYNAMIC_TOPIC_CONFIG")
    linked(proxy, entry)
    assert entry in listed(proxy, f"topics/{topic}/configs", "KafkaTopicConfig")
    assert proxy.ask("PUT", f"{path}/retention.ms", {"value": "2000"}).status == 204
    eventually(lambda: proxy.get(f"{path}/retention.ms").json["value"] == "2000")
    changes = [{"name": "retention.ms", "operation": "DELETE"}, {"name": "cleanup.policy", "value": "compact"}]
    assert proxy.post(f"{path}:alter", {"data": changes, "validate_only": True}).status == 204
    assert proxy.get(f"{path}/retention.ms").json["value"] == "2000"
    assert proxy.post(f"{path}:alter", {"data": changes}).status == 204
    eventually(lambda: proxy.get(f"{path}/retention.ms").json["is_default"])
    eventually(lambda: proxy.get(f"/topics/{topic}").json["configs"]["cleanup.policy"] == "compact")
    assert proxy.ask("DELETE", f"{path}/cleanup.policy").status == 204
    many = {"data": [{"topic_name": topic, "configs": [{"name": "segment.ms", "value": "77"}]}]}
    assert proxy.post(f"{proxy.cluster}/topics/-/configs:alter", many).status == 204
    eventually(lambda: proxy.get(f"{path}/segment.ms").json["value"] == "77")
    assert any(each["topic_name"] == topic for each in listed(proxy, "topics/-/configs", "KafkaTopicConfig"))
    assert proxy.ask("PUT", f"{path}/retention.ms", {"value": "soon"}).code == 40002
    assert proxy.ask("PUT", f"{path}/no.such.key", {"value": "1"}).code == 404
    assert proxy.post(f"{path}:alter", {"data": [{"name": "x", "operation": "ADD"}]}).code == 40002
    assert proxy.get(f"{proxy.cluster}/topics/{topic}x/configs").code == 40403


def test_configurations_of_brokers(proxy: Proxy) -> None:
    brokers = proxy.get("/brokers").json["brokers"]
    paths = [f"{proxy.cluster}/brokers/{each}/configs" for each in brokers]
    path = paths[0]
    linked(proxy, proxy.get(f"{path}/log.cleaner.threads").json)
    of_all = [entry for each in paths for entry in proxy.get(each).json["data"]]
    assert listed(proxy, "brokers/-/configs", "KafkaBrokerConfig") == of_all
    everywhere = f"{proxy.cluster}/broker-configs"
    assert proxy.ask("PUT", f"{everywhere}/log.cleaner.threads", {"value": "2"}).status == 204
    eventually(lambda: proxy.get(f"{everywhere}/log.cleaner.threads").status == 200)
    entry = proxy.get(f"{everywhere}/log.cleaner.threads").json
    assert (entry["value"], entry["config_type"], entry["kind"]) == ("2", "BROKER", "KafkaClusterConfig")
    assert entry in listed(proxy, "broker-configs", "KafkaClusterConfig")
    assert proxy.ask("DELETE", f"{everywhere}/log.cleaner.threads").status == 204
    eventually(lambda: proxy.get(f"{everywhere}/log.cleaner.threads").status == 404)
    assert proxy.get(f"{proxy.cluster}/brokers/77/configs").code == 404


def test_groups_and_their_lag(proxy: Proxy, topic: str) -> None:
    proxy.create_topic(topic, partitions=2)
    proxy.produce(topic, [1, 2, 3], partition=0)
    config = {"bootstrap.servers": proxy.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "client.id": "me", "enable.auto.commit": False})
    consumer.subscribe([topic])
    first = eventually(lambda: consumer.poll(0.1))
    consumer.commit(first, asynchronous=False)
    group = f"consumer-groups/{topic}"
    assert topic in [each["consumer_group_id"] for each in listed(proxy, "consumer-groups", "KafkaConsumerGroup")]
    found = proxy.get(f"{proxy.cluster}/{group}").json
    assert (found["state"], found["type"], found["is_simple"]) == ("STABLE", "CLASSIC", False)
    linked(proxy, found)
    (member,) = listed(proxy, f"{group}/consumers", "KafkaConsumer")
    linked(proxy, member)
    assert member["client_id"] == "me"
    assignments = listed(proxy, f"{group}/consumers/{member['consumer_id']}/assignments", "KafkaConsumerAssignment")
    assert [each["partition_id"] for each in assignments] == [0, 1]
    linked(proxy, assignments[0])
    (lag,) = listed(proxy, f"{group}/lags", "KafkaConsumerLag")
    linked(proxy, lag)
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"], lag["client_id"]) == (1, 3, 2, "me")
    summary = proxy.get(f"{proxy.cluster}/{group}/lag-summary").json
    assert (summary["max_lag"], summary["total_lag"], summary["max_lag_topic_name"]) == (2, 2, topic)
    for path in ("consumer-groups/nobody", f"{group}/consumers/nobody", f"{group}/lags/{topic}/partitions/1"):
        assert proxy.get(f"{proxy.cluster}/{path}").code == 404
    consumer.close()


@pytest.fixture(scope="module", params=["moldau", "apache"])
def guarded(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """A cluster with an authorizer."""
    if request.param == "apache" and not apache_kafka.available():
        pytest.skip("needs Java and Apache Kafka's jars")
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with running_broker(request.param, properties=properties) as bootstrap, running_proxy(bootstrap) as running:
        yield running


def test_acls(guarded: Proxy) -> None:
    path = f"{guarded.cluster}/acls"
    rule = {
        "resource_type": "TOPIC", "resource_name": "orders-", "pattern_type": "PREFIXED", "principal": "User:alice",
        "host": "*", "operation": "READ", "permission": "ALLOW",
    }  # fmt: skip
    made = guarded.post(path, rule)
    assert (made.status, made.headers["location"].partition("?")[0]) == (201, f"{guarded.url}{path}")
    others = [{**rule, "principal": each} for each in ("User:bob", "User:carol")]
    assert guarded.post(f"{path}:batch", {"data": others}).status == 201

    def principals(query: str = "") -> list[str]:
        answer = guarded.get(f"{path}{query}")
        assert answer.json["kind"] == "KafkaAclList"
        return sorted(each["principal"] for each in answer.json["data"])

    eventually(lambda: principals() == ["User:alice", "User:bob", "User:carol"])
    assert principals("?principal=User%3Abob&resource_type=topic") == ["User:bob"]
    found = guarded.get(f"{path}?principal=User%3Aalice").json["data"][0]
    assert {key: found[key] for key in rule} == rule
    assert guarded.get(f"{path}?{made.headers['location'].partition('?')[2]}").json["data"] == [found]
    assert guarded.ask("DELETE", path).code == 400, "nobody deletes all by a slip"
    everything = "resource_type=any&pattern_type=any&operation=any&permission=any"
    gone = guarded.ask("DELETE", f"{path}?{everything}&principal=User%3Aalice")
    assert (gone.status, gone.json["data"]) == (200, [found])
    eventually(lambda: principals() == ["User:bob", "User:carol"])
    assert guarded.get(f"{path}?resource_type=cake").code == 400
    assert guarded.post(path, {**rule, "operation": "EAT"}).code == 400
    assert guarded.post(path, {"resource_type": "TOPIC"}).code == 400


def test_a_cluster_without_an_authorizer_says_so(proxy: Proxy) -> None:
    assert proxy.get(f"{proxy.cluster}/acls").code == 40002


def test_a_cluster_that_is_not_there_is_no_error_of_the_proxy() -> None:
    with running_proxy("127.0.0.1:1", "--timeout", "2") as proxy:
        assert proxy.get("/v3/clusters").code == 50302
        assert proxy.get("/topics").status == 503
        assert proxy.get("/health").status == 200
