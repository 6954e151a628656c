"""Clusters, of which there is one, and brokers."""

from __future__ import annotations

from starlette.responses import Response

from moldau.client.cluster import Cluster, Node
from moldau.rest.calls import Call, Json, answer
from moldau.rest.problems import not_found
from moldau.rest.v3.resources import Resources, resources_of
from moldau.wire.messages import MetadataResponse


async def list_clusters(call: Call) -> Response:
    found = Resources(call, await call.session.cluster_id())
    data = [_cluster_json(found, (await call.session.ask(_brokers)).controller_id)]
    listed = {"kind": "KafkaClusterList", "metadata": {"self": call.url("v3", "clusters"), "next": None}, "data": data}
    return answer(listed)


async def get_cluster(call: Call) -> Response:
    found = await resources_of(call)
    return answer(_cluster_json(found, (await call.session.ask(_brokers)).controller_id))


def _brokers(cluster: Cluster) -> MetadataResponse:
    return cluster.metadata([])


def _cluster_json(found: Resources, controller_id: int) -> Json:
    controller = {} if controller_id < 0 else {"controller": found.link("brokers", controller_id)}
    return {
        **found.resource("KafkaCluster", (), ()),
        **controller,
        "acls": found.link("acls"),
        "brokers": found.link("brokers"),
        "broker_configs": found.link("broker-configs"),
        "consumer_groups": found.link("consumer-groups"),
        "topics": found.link("topics"),
        "partition_reassignments": found.link("topics", "-", "partitions", "-", "reassignment"),
    }


async def list_brokers(call: Call) -> Response:
    found = await resources_of(call)
    nodes = await call.session.ask(lambda cluster: cluster.nodes())
    return answer(found.collection("KafkaBrokerList", ("brokers",), [_broker(found, each) for each in nodes.values()]))


async def get_broker(call: Call) -> Response:
    found = await resources_of(call)
    return answer(_broker(found, await broker_of(call)))


async def broker_of(call: Call) -> Node:
    """The one that the path names. 404 if there is none of that id."""
    broker_id = call.number("broker_id")
    nodes = await call.session.ask(lambda cluster: cluster.nodes())
    if broker_id not in nodes:
        raise not_found("Broker", broker_id)
    return nodes[broker_id]


def _broker(found: Resources, node: Node) -> Json:
    return found.resource(
        "KafkaBroker",
        ("brokers", node.id),
        ("broker", node.id),
        broker_id=node.id,
        host=node.host,
        port=node.port,
        rack=node.rack,
        configs=found.link("brokers", node.id, "configs"),
        partition_replicas=found.link("brokers", node.id, "partition-replicas"),
    )
