"""DeleteAcls, v1 to v3: the ACLs that filters find, and each filter with what it found.

Filters that name no single ACL are compared with all of them, so that many of them are many decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from moldau.broker.acl_filters import acl_filter
from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded, refuse_repetition
from moldau.controller.runtime import Controller
from moldau.controller.settings.acls import DeletedAcls, decide_delete_acls, portions
from moldau.coordinator.long_work import in_slices
from moldau.core.errors import ApiError, ErrorCode
from moldau.security.acls.bindings import Acl, AclFilter
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@api(ApiKey.DELETE_ACLS, DeleteAclsRequest, versions=(1, 3), forwarded=True)
async def delete_acls(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse | Encoded[DeleteAclsResponse]:
    authorization = context.services.authorization
    if authorization is None:
        disabled = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        response = DeleteAclsResponse(filter_results=[disabled] * len(request.filters))
        return response if len(request.filters) <= ROWS_MAX else await encoded(lambda: response, context)
    filters = [acl_filter(each) for each in request.filters]
    refuse_repetition(filters)
    controller, long_work = context.services.controller, context.services.long_work
    deleted: list[DeletedAcls] = []
    gone: dict[Acl, None] = {}
    for some in portions(filters, len(controller.image.acls)):
        if deleted:
            await long_work.wait()
        deleted += await _delete(some, gone.keys(), controller)
        gone |= dict.fromkeys(acl for each in deleted[-len(some) :] for acl in each.acls)
    async for acl in in_slices(gone, long_work):
        authorization.note_changes(context, "deleted", [acl])
    rows = sum([1 + len(each.acls) for each in deleted])
    return _response(deleted) if rows <= ROWS_MAX else await encoded(lambda: _response(deleted), context)


async def _delete(filters: Sequence[AclFilter], gone: Collection[Acl], controller: Controller) -> list[DeletedAcls]:
    try:
        return await controller.write(lambda image: decide_delete_acls(image, filters, gone=gone))
    except ApiError as wrong:
        return [DeletedAcls(wrong.code, wrong.message)] * len(filters)


def _response(deleted: list[DeletedAcls]) -> DeleteAclsResponse:
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
