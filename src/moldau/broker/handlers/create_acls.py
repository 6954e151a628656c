"""CreateAcls, as a broker of Apache Kafka without an authorizer answers it."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


@api(ApiKey.CREATE_ACLS, CreateAclsRequest, versions=(1, 3), parts=(("creations", "results"),), forwarded=True)
def create_acls(request: CreateAclsRequest, _context: Context) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured.")
    return CreateAclsResponse(results=[refused] * len(request.creations))
