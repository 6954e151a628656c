"""DeleteAcls, as a broker of Apache Kafka without an authorizer answers it."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


@api(ApiKey.DELETE_ACLS, DeleteAclsRequest, versions=(1, 3), parts=(("filters", "filter_results"),), forwarded=True)
def delete_acls(request: DeleteAclsRequest, _context: Context) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
