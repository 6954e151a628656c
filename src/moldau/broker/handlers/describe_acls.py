"""DescribeAcls, v1 to v3: the ACLs that a filter finds, by the resources that they are about."""

from __future__ import annotations

from moldau.broker.acl_filters import acl_filter
from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, encoded
from moldau.controller.image import ClusterImage
from moldau.controller.settings.acls import matching_acls
from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import PatternType, ResourceType
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


@api(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest, versions=(1, 3))
def describe_acls(request: DescribeAclsRequest, context: Context) -> Answer:
    if context.services.authorization is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
        )
    image = context.services.controller.image
    if len(image.acls) <= ROWS_MAX:
        return _response(request, image)
    return encoded(lambda: _response(request, image), context)


def _response(request: DescribeAclsRequest, image: ClusterImage) -> DescribeAclsResponse:
    resources: dict[tuple[ResourceType, str, PatternType], list[AclDescription]] = {}
    for acl in matching_acls(image, acl_filter(request)):
        acls = resources.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), [])
        acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission))
    return DescribeAclsResponse(
        resources=[DescribeAclsResource(*resource, acls) for resource, acls in resources.items()]
    )
