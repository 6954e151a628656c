"""What a user types and reads: operations such as `read`, principals such as `alice`, and the ACLs that follow."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
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
    from_code,
)

NAMED = (
    ("topic", ResourceType.TOPIC),
    ("group", ResourceType.GROUP),
    ("transactional_id", ResourceType.TRANSACTIONAL_ID),
    ("delegation_token", ResourceType.DELEGATION_TOKEN),
    ("user_principal", ResourceType.USER),
)
_OPERATIONS = {
    each.name.replace("_", "").lower(): each
    for each in AclOperation
    if each not in (AclOperation.UNKNOWN, AclOperation.ANY)
}


class Resource(NamedTuple):
    kind: ResourceType
    name: str


class Acl(NamedTuple):
    """One as the protocol has it, with what is allowed or denied at its end."""

    kind: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType

    def row(self) -> dict[str, object]:
        return {
            "permission": word(self.permission),
            "principal": self.principal,
            "host": self.host,
            "operation": word(self.operation),
            "type": word(self.kind),
            "name": self.name,
            "pattern": word(self.pattern),
        }

    def __str__(self) -> str:
        prefixed = " prefixed" if self.pattern is PatternType.PREFIXED else ""
        what = f"{word(self.operation)} on{prefixed} {word(self.kind)} {self.name}"
        where = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{word(self.permission)} {self.principal} {what}{where}"


class Filter(NamedTuple):
    """What ACLs are looked for by; None stands for any."""

    kind: ResourceType
    name: str | None
    pattern: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: PermissionType


def word(value: ResourceType | PatternType | AclOperation | PermissionType) -> str:
    return value.name.replace("_", "-").lower()


def acl_of(codes: tuple[int, str, int, str, str, int, int]) -> Acl:
    kind, name, pattern, principal, host, operation, permission = codes
    return Acl(
        from_code(ResourceType, kind),
        name,
        from_code(PatternType, pattern),
        principal,
        host,
        from_code(AclOperation, operation),
        from_code(PermissionType, permission),
    )


def operation(text: str) -> AclOperation:
    """By Kafka's word in any spelling: DescribeConfigs, describe_configs, describe-configs."""
    found = _OPERATIONS.get(text.replace("_", "").replace("-", "").lower())
    if found is None:
        known = ", ".join(word(each) for each in _OPERATIONS.values())
        raise ArgumentTypeError(f"{text!r} is no operation; expected one of {known}")
    return found


def principal(text: str) -> str:
    """`alice` is User:alice, as most of them are."""
    if not text or text.startswith(":"):
        raise ArgumentTypeError(f"{text!r} is no principal; expected User:NAME")
    return text if ":" in text else f"User:{text}"


def new_principal(text: str) -> str:
    """For an ACL that is made; others may have any that Kafka's tools take."""
    from moldau.security.principals import USER_TYPE

    found = principal(text)
    kind, _, name = found.partition(":")
    if kind != USER_TYPE and kind.lower() == USER_TYPE.lower():
        raise ArgumentTypeError(f"{text!r} is nobody: the type counts as it is written, {USER_TYPE}:{name}")
    return found


def new_host(text: str) -> str:
    """For an ACL that is made: brokers compare addresses in Java's words, and look up no names."""
    if text == WILDCARD:
        return text
    from ipaddress import ip_address

    from moldau.security.acls.hosts import host_address

    try:
        ip_address(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no address: ACLs know no names and no networks, and * is any") from None
    return host_address(text)


def resources(options: Namespace) -> list[Resource]:
    found = [Resource(kind, name) for option, kind in NAMED for name in getattr(options, option)]
    return [*found, Resource(ResourceType.CLUSTER, CLUSTER_NAME)] if options.cluster else found


def rights(options: Namespace) -> list[tuple[Resource, AclOperation]]:
    """Every resource with every operation on it; of --producer and --consumer as `kafka-acls` has them."""
    found = resources(options)
    wanted = [(each, action) for each in found for action in options.operation]
    for resource, action in wanted:
        allowed = SUPPORTED_OPERATIONS[resource.kind]
        if action is not AclOperation.ALL and action not in allowed:
            known = ", ".join(word(each) for each in (*allowed, AclOperation.ALL))
            raise UsageError(f"there is no {word(action)} of a {word(resource.kind)}; expected {known}")
    if options.producer or options.consumer:
        wanted += convenient(options, found)
    if not found and not wanted:
        raise UsageError("expected what it is about: --topic, --group, --cluster, --transactional-id or others")
    if not wanted:
        raise UsageError("expected what may be done with it: --operation, --producer or --consumer")
    return list(dict.fromkeys(wanted))


def convenient(options: Namespace, found: list[Resource]) -> Iterator[tuple[Resource, AclOperation]]:
    kinds = {each.kind for each in found}
    if ResourceType.TOPIC not in kinds:
        raise UsageError("--producer and --consumer need a --topic")
    if options.consumer and ResourceType.GROUP not in kinds:
        raise UsageError("--consumer needs a --group")
    if options.deny:
        raise UsageError("--producer and --consumer allow; deny what is meant by --operation")
    read, write, describe, create = (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.CREATE,
    )
    producing = {ResourceType.TOPIC: (write, describe, create), ResourceType.TRANSACTIONAL_ID: (write, describe)}
    consuming = {ResourceType.TOPIC: (read, describe), ResourceType.GROUP: (read,)}
    for is_meant, table in ((options.producer, producing), (options.consumer, consuming)):
        for each in found if is_meant else ():
            yield from ((each, action) for action in table.get(each.kind, ()))


def acls(options: Namespace) -> list[Acl]:
    """What `add` makes."""
    permission = PermissionType.DENY if options.deny else PermissionType.ALLOW
    found = []
    for (resource, action), who, host in product(rights(options), options.principal, options.host or [WILDCARD]):
        # There is one cluster, and it has its whole name.
        is_prefixed = options.prefixed and resource.kind is not ResourceType.CLUSTER
        pattern = PatternType.PREFIXED if is_prefixed else PatternType.LITERAL
        found.append(Acl(*resource, pattern, who, host, action, permission))
    return found


def filters(options: Namespace, *, pattern: PatternType) -> list[Filter]:
    """What `list` and `remove` look for; `pattern` is for names without --prefixed."""
    permission = PermissionType.ANY
    if options.allow or options.deny:
        permission = PermissionType.DENY if options.deny else PermissionType.ALLOW
    about: list[tuple[ResourceType, str | None, AclOperation]]
    if options.producer or options.consumer:
        about = [(*resource, action) for resource, action in rights(options)]
    else:
        named: list[tuple[ResourceType, str | None]] = [*resources(options)] or [(ResourceType.ANY, None)]
        about = [(*each, action) for each in named for action in options.operation or [AclOperation.ANY]]
    found = []
    for (kind, name, action), who, host in product(about, options.principal or [None], options.host or [None]):
        chosen = PatternType.PREFIXED if options.prefixed else PatternType.ANY if name is None else pattern
        if kind is ResourceType.CLUSTER:
            chosen = PatternType.LITERAL
        found.append(Filter(kind, name, chosen, who, host, action, permission))
    return found
