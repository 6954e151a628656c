"""DescribeCluster (60): the cluster's id, its controller and its brokers.

1 can ask for controllers instead of brokers, 2 also for brokers that are fenced.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32, since


class DescribeClusterRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_CLUSTER
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1
    include_fenced_brokers: Annotated[bool, since(2)] = False


class DescribeClusterBroker(Struct, gc=False):
    broker_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None
    is_fenced: Annotated[bool, since(2)] = False


class DescribeClusterResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_CLUSTER
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: str = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = -(2**31)
