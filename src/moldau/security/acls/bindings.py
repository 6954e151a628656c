"""ACLs, and filters that find them, with the rules of Kafka for both."""

from __future__ import annotations

from msgspec import Struct

from moldau.security.acls.vocabulary import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)

# Members of an enum take longer to look up than all else that is done with them.
_ANY_TYPE, _ANY_OPERATION, _ANY_PERMISSION = ResourceType.ANY, AclOperation.ANY, PermissionType.ANY
_ANY_PATTERN, _MATCH, _PREFIXED = PatternType.ANY, PatternType.MATCH, PatternType.PREFIXED


class Acl(Struct, frozen=True, array_like=True, gc=False):
    """Whether a principal may do something, from a host, with the resources that a pattern names.

    Kafka has it as AclBinding in its clients, StandardAcl in its brokers and AccessControlEntryRecord in its log.
    """

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType

    def __str__(self) -> str:
        return (
            f"StandardAcl[resourceType={self.resource_type.name}, resourceName={self.resource_name}, "
            f"patternType={self.pattern_type.name}, principal={self.principal}, host={self.host}, "
            f"operation={self.operation.name}, permissionType={self.permission.name}]"
        )


class AclFilter(Struct, frozen=True):
    """Which ACLs are meant. None, and ANY, stand for everything."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: PermissionType = PermissionType.ANY

    def matches(self, acl: Acl) -> bool:
        """A principal, a host or an operation matches only itself: no wildcard and no ALL stands for another."""
        return (
            self.principal in (None, acl.principal)
            and self.resource_type in (_ANY_TYPE, acl.resource_type)
            and self.operation in (_ANY_OPERATION, acl.operation)
            and self.permission in (_ANY_PERMISSION, acl.permission)
            and self.host in (None, acl.host)
            and self._matches_pattern(acl)
        )

    def only(self) -> Acl | None:
        """The one ACL that can match, if every field says what it has to be."""
        if self.resource_name is None or self.principal is None or self.host is None:
            return None
        acl = Acl(
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission,
        )
        return None if acl_problem(acl) else acl

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type is _MATCH:
            return self.resource_name is None or concerns(acl, self.resource_name)
        return self.pattern_type in (_ANY_PATTERN, acl.pattern_type) and self.resource_name in (None, acl.resource_name)


def concerns(acl: Acl, resource_name: str) -> bool:
    """Whether the pattern of an ACL names this resource, if it is one of its type."""
    if acl.pattern_type is _PREFIXED:
        return resource_name.startswith(acl.resource_name)
    return acl.resource_name in (resource_name, WILDCARD)


_NO_RESOURCE_TYPE = (ResourceType.UNKNOWN, ResourceType.ANY)
_PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)
_NO_OPERATION = (AclOperation.UNKNOWN, AclOperation.ANY)
_PERMISSIONS = (PermissionType.DENY, PermissionType.ALLOW)


def acl_problem(acl: Acl) -> str | None:
    """Why there can't be such an ACL, in Kafka's words; all are answered with INVALID_REQUEST.

    Neither the host nor whether the resource knows the operation is checked, as in Kafka's brokers.
    """
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type in _NO_RESOURCE_TYPE:
        return f"Invalid resourceType {acl.resource_type.name}"
    if acl.pattern_type not in _PATTERN_TYPES:
        return f"Invalid patternType {acl.pattern_type.name}"
    if acl.operation in _NO_OPERATION:
        return f"Invalid operation {acl.operation.name}"
    if acl.permission not in _PERMISSIONS:
        return f"Invalid permissionType {acl.permission.name}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def filter_problem(wanted: AclFilter) -> str | None:
    """Why nothing can be deleted by such a filter, in Kafka's words; all are answered with INVALID_REQUEST."""
    if wanted.resource_type is ResourceType.UNKNOWN or wanted.pattern_type is PatternType.UNKNOWN:
        return "Unknown patternFilter."
    if wanted.operation is AclOperation.UNKNOWN or wanted.permission is PermissionType.UNKNOWN:
        return "Unknown entryFilter."
    return None
