"""Filters for ACLs, as two APIs carry them in the same fields."""

from __future__ import annotations

from moldau.security.acls.bindings import AclFilter
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType, from_code
from moldau.wire.messages.delete_acls import DeleteAclsFilter
from moldau.wire.messages.describe_acls import DescribeAclsRequest


def acl_filter(wanted: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    return AclFilter(
        from_code(ResourceType, wanted.resource_type_filter),
        wanted.resource_name_filter,
        from_code(PatternType, wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        from_code(AclOperation, wanted.operation),
        from_code(PermissionType, wanted.permission_type),
    )
