"""ACLs in few words, the small world that random tests choose from, and what any ACLs mean, without an index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hypothesis import strategies as st

from moldau.core.ids import AclId
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import Principal

ALICE, BOB, SUPER = Principal("User", "alice"), Principal("User", "bob"), Principal("User", "super")
HOST, OTHER_HOST = "10.0.0.1", "10.0.0.2"


def allow(
    operation: AclOperation,
    name: str = "orders",
    *,
    who: str = "User:alice",
    host: str = "*",
    resource_type: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    permission: PermissionType = PermissionType.ALLOW,
) -> Acl:
    return Acl(resource_type, name, pattern, who, host, operation, permission)


def deny(
    operation: AclOperation,
    name: str = "orders",
    *,
    who: str = "User:alice",
    host: str = "*",
    resource_type: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
) -> Acl:
    return Acl(resource_type, name, pattern, who, host, operation, PermissionType.DENY)


def with_ids(acls: Iterable[Acl]) -> Mapping[AclId, Acl]:
    return {AclId(number.to_bytes(16, "big")): acl for number, acl in enumerate(acls, 1)}


# Few values, so that most questions meet several ACLs, and the letters around '*' in ASCII, by which Kafka sorts.
NAMES = ("a", "ab", "abc", "abd", "b", "*", "*a", "!", "!a", "hardcode", "hard", "ä", "😀a")
OPERATIONS = tuple(each for each in AclOperation if each not in (AclOperation.UNKNOWN, AclOperation.ANY))
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
PRINCIPALS = (ALICE, BOB, SUPER, Principal("Role", "alice"), Principal("User", "*"))
HOSTS = (HOST, OTHER_HOST)

acls = st.builds(
    Acl,
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*", "Role:alice", "Role:*"]),
    st.sampled_from([*HOSTS, "*"]),
    st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE, *OPERATIONS]),
    st.sampled_from([PermissionType.ALLOW, PermissionType.DENY]),
)
questions = st.tuples(
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from([each for each in OPERATIONS if each is not AclOperation.ALL]),
    st.sampled_from(TYPES),
    st.sampled_from([*NAMES, "abcd", "orders", ""]),
)


def naive_answer(
    every: Collection[Acl],
    question: tuple[Principal, str, AclOperation, ResourceType, str],
    *,
    super_users: Collection[str] = (),
    allow_everyone: bool = False,
) -> bool:
    """Kafka's rules, one after the other."""
    principal, host, operation, resource_type, name = question
    if str(principal) in super_users:
        return True
    on_resource = [
        acl
        for acl in every
        if acl.resource_type == resource_type
        and (
            name.startswith(acl.resource_name)
            if acl.pattern_type == PatternType.PREFIXED
            else acl.resource_name in ("*", name)
        )
    ]
    if not on_resource:
        return allow_everyone
    mine = [acl for acl in on_resource if acl.principal in (str(principal), "User:*") and acl.host in (host, "*")]
    denied = {acl.operation for acl in mine if acl.permission == PermissionType.DENY}
    allowed = {acl.operation for acl in mine if acl.permission == PermissionType.ALLOW}
    if denied & {operation, AclOperation.ALL}:
        return False
    enough = {operation, AclOperation.ALL}
    if operation == AclOperation.DESCRIBE:
        enough |= {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    if operation == AclOperation.DESCRIBE_CONFIGS:
        enough.add(AclOperation.ALTER_CONFIGS)
    return bool(allowed & enough)
