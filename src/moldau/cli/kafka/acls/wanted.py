"""Which ACLs a command line is about, by the resources that it names."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from moldau.cli.failures import UsageError
from moldau.security.acls.vocabulary import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)

READ, WRITE, CREATE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE
NAMED = (
    ("topic", ResourceType.TOPIC),
    ("group", ResourceType.GROUP),
    ("transactional_id", ResourceType.TRANSACTIONAL_ID),
    ("delegation_token", ResourceType.DELEGATION_TOKEN),
    ("user_principal", ResourceType.USER),
)


class Pattern(NamedTuple):
    """A resource, or many; of a filter the type may also be ANY or MATCH."""

    kind: ResourceType
    name: str
    pattern: PatternType

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.kind.name}, name={self.name}, patternType={self.pattern.name})"


class Entry(NamedTuple):
    """Who may do what, or may not."""

    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name},"
            f" permissionType={self.permission.name})"
        )


Wanted = dict[Pattern, list[Entry]]

CLUSTER = Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)


def patterns(options: Namespace) -> list[Pattern]:
    kind = options.resource_pattern_type
    found = [Pattern(each, name.strip(), kind) for option, each in NAMED for name in getattr(options, option)]
    if kind is PatternType.LITERAL and (options.cluster or options.idempotent):
        found.append(CLUSTER)
    return found


def wanted(options: Namespace) -> Wanted:
    """Without entries, where nobody is named: all that there are."""
    named = patterns(options)
    if not named:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or"
            " --delegation-token <Delegation Token ID>"
        )
    found: Wanted = {}
    if not (options.producer or options.consumer):
        operations = options.operation or [AclOperation.ALL]
        found = {each: entries(options, operations) for each in named}
    if options.producer:
        _add(found, named, ResourceType.TOPIC, entries(options, (WRITE, DESCRIBE, CREATE)))
        _add(found, named, ResourceType.TRANSACTIONAL_ID, entries(options, (WRITE, DESCRIBE)))
        if options.idempotent:
            found[CLUSTER] = entries(options, (AclOperation.IDEMPOTENT_WRITE,))
    if options.consumer:
        _add(found, named, ResourceType.TOPIC, entries(options, (READ, DESCRIBE)))
        _add(found, named, ResourceType.GROUP, entries(options, (READ,)))
    check(found)
    return found


def _add(found: Wanted, named: Iterable[Pattern], kind: ResourceType, own: Sequence[Entry]) -> None:
    for each in named:
        if each.kind is kind:
            found[each] = [*dict.fromkeys([*found.get(each, ()), *own])]


def entries(options: Namespace, operations: Iterable[AclOperation]) -> list[Entry]:
    found = []
    for permission, principals, hosts in (
        (PermissionType.ALLOW, options.allow_principal, options.allow_host),
        (PermissionType.DENY, options.deny_principal, options.deny_host),
    ):
        for who, operation, host in product(principals, sorted(operations), hosts or [WILDCARD]):
            found.append(Entry(who, host, operation, permission))
    return found


def check(found: Wanted) -> None:
    for resource, own in found.items():
        allowed = (*SUPPORTED_OPERATIONS[resource.kind], AclOperation.ALL)
        if any(each.operation not in allowed for each in own):
            names = ", ".join(each.name for each in allowed)
            raise UsageError(f"ResourceType {resource.kind.name} only supports operations [{names}]")
