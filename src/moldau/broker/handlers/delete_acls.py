"""DeleteAcls, v1 to v3: the ACLs that filters find, and each filter with what it found."""

from __future__ import annotations

from moldau.broker.acl_filters import acl_filter
from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.settings.acls import DeletedAcls, decide_delete_acls
from moldau.core.errors import ApiError, ErrorCode
from moldau.security.acls.bindings import Acl
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@api(ApiKey.DELETE_ACLS, DeleteAclsRequest, versions=(1, 3), parts=(("filters", "filter_results"),), forwarded=True)
async def delete_acls(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    authorization = context.services.authorization
    if authorization is None:
        disabled = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        return DeleteAclsResponse(filter_results=[disabled] * len(request.filters))
    filters = [acl_filter(each) for each in request.filters]
    try:
        deleted = await context.services.controller.write(lambda image: decide_delete_acls(image, filters))
    except ApiError as wrong:
        deleted = [DeletedAcls(wrong.code, wrong.message)] * len(filters)
    gone = dict.fromkeys(acl for each in deleted for acl in each.acls)
    authorization.note_changes(context, "deleted", gone)
    return DeleteAclsResponse(filter_results=[_result(each) for each in deleted])


def _result(deleted: DeletedAcls) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(deleted.error, deleted.message, [_matching(acl) for acl in deleted.acls])


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
