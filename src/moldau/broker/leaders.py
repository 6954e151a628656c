"""What a client is told of brokers: which there are, and who leads a partition when it asked the wrong one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.controller.image import ClusterImage, PartitionImage
from moldau.replication.partition import Partition
from moldau.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint

if TYPE_CHECKING:
    from moldau.broker.context import Context


def current_leader(partition: Partition) -> LeaderIdAndEpoch:
    return LeaderIdAndEpoch(leader_id=partition.leadership.leader_id, leader_epoch=partition.leadership.leader_epoch)


def offline_replicas(partition: PartitionImage, image: ClusterImage) -> list[int]:
    """Replicas that nobody can read: their broker is gone, or their log directory."""
    brokers = image.brokers
    return [
        replica
        for replica in partition.replicas
        if replica in partition.offline or (broker := brokers.get(replica)) is None or broker.fenced
    ]


def endpoints(
    image: ClusterImage, broker_ids: Iterable[int], listener_name: str, *, with_fenced: bool = False
) -> list[tuple[int, str, int, str | None]]:
    """(id, host, port, rack) of each living broker, or each at all, that has the listener the client came by."""
    found = []
    for broker_id in sorted(broker_ids):
        broker = image.brokers.get(broker_id)
        endpoint = broker.endpoints.get(listener_name) if broker is not None else None
        if broker is not None and endpoint is not None and (with_fenced or not broker.fenced):
            found.append((broker_id, endpoint.host, endpoint.port, broker.rack))
    return found


def told_of(
    image: ClusterImage, context: Context, *, with_fenced: bool = False
) -> list[tuple[int, str, int, str | None]]:
    """Those that live, and whoever answers: it may be the first of all to come back, or have lost its session.

    When nobody lives all of them are probably about to: brokers lose their sessions together when the metadata store is
    gone. librdkafka forgets a broker that is not in an answer; one that it forgets and hears of again soon, it may
    never connect with, and its consumers wait for ever.
    """
    itself, listener_name = context.services.itself, context.peer.listener_name
    ids = image.brokers
    living = [] if with_fenced else endpoints(image, ids, listener_name)
    found = living or endpoints(image, ids, listener_name, with_fenced=True)
    if itself is None or any(broker_id == itself.id for broker_id, *_ in found):
        return found
    endpoint = itself.endpoints.get(listener_name)
    return found if endpoint is None else sorted([*found, (itself.id, endpoint.host, endpoint.port, itself.rack)])


def node_endpoints(image: ClusterImage, broker_ids: Iterable[int], listener_name: str) -> list[NodeEndpoint]:
    return [
        NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in endpoints(image, broker_ids, listener_name)
    ]
