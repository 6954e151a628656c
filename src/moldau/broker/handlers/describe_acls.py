"""DescribeAcls, as a broker of Apache Kafka without an authorizer answers it."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@api(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest, versions=(1, 3))
def describe_acls(_request: DescribeAclsRequest, _context: Context) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
