"""DescribeCluster: v1 can ask for controllers instead of brokers, v2 for brokers that are fenced off."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.authorized_operations import NOT_ASKED
from moldau.broker.context import Context
from moldau.broker.leaders import told_of
from moldau.broker.rights import operations_on_cluster
from moldau.controller.image import ClusterImage
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


@api(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest, versions=(0, 2))
def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
            ),
        )
    image = context.services.image
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=_brokers(image, context, with_fenced=request.include_fenced_brokers),
        cluster_authorized_operations=(
            operations_on_cluster(context) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _brokers(image: ClusterImage, context: Context, *, with_fenced: bool) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(
            broker_id=broker_id,
            host=host,
            port=port,
            rack=rack,
            is_fenced=(known := image.brokers.get(broker_id)) is None or known.fenced,
        )
        for broker_id, host, port, rack in told_of(image, context, with_fenced=with_fenced)
    ]
