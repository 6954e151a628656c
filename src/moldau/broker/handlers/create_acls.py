"""CreateAcls, v1 to v3: new ACLs, each on its own. An ACL that is there already is no error."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.settings.acls import CreatedAcl, decide_create_acls
from moldau.core.errors import ApiError, ErrorCode
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType, from_code
from moldau.wire.api import ApiKey
from moldau.wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse


@api(ApiKey.CREATE_ACLS, CreateAclsRequest, versions=(1, 3), parts=(("creations", "results"),), forwarded=True)
async def create_acls(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    authorization = context.services.authorization
    if authorization is None:
        disabled = AclCreationResult(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        return CreateAclsResponse(results=[disabled] * len(request.creations))
    acls = [_acl(each) for each in request.creations]
    try:
        created = await context.services.controller.write(lambda image: decide_create_acls(image, acls))
    except ApiError as wrong:
        created = [CreatedAcl(wrong.code, wrong.message)] * len(acls)
    new = [acl for acl, each in zip(acls, created, strict=True) if each.is_new]
    authorization.note_changes(context, "created", new)
    return CreateAclsResponse(results=[AclCreationResult(each.error, each.message or "") for each in created])


def _acl(wanted: AclCreation) -> Acl:
    return Acl(
        from_code(ResourceType, wanted.resource_type),
        wanted.resource_name,
        from_code(PatternType, wanted.resource_pattern_type),
        wanted.principal,
        wanted.host,
        from_code(AclOperation, wanted.operation),
        from_code(PermissionType, wanted.permission_type),
    )
