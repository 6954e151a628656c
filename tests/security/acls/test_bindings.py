"""Which ACLs there can be, and which of them a filter finds. The cases are those of Kafka's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given

from moldau.security.acls.bindings import Acl, AclFilter, acl_problem, filter_problem
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from tests.security.acls.bindings import acls, allow, deny

READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

EVERYWHERE = allow(READ, "*")
ORDERS = allow(READ, "orders")
ORD = allow(READ, "ord", pattern=PREFIXED)
ORDERS_PREFIX = allow(READ, "orders", pattern=PREFIXED)
GROUP = allow(READ, "orders", resource_type=ResourceType.GROUP)
PATTERNS = (EVERYWHERE, ORDERS, ORD, ORDERS_PREFIX, GROUP)


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        (PatternType.ANY, None, {EVERYWHERE, ORDERS, ORD, ORDERS_PREFIX}),
        (PatternType.ANY, "orders", {ORDERS, ORDERS_PREFIX}),
        (PatternType.ANY, "*", {EVERYWHERE}),
        (PatternType.MATCH, None, {EVERYWHERE, ORDERS, ORD, ORDERS_PREFIX}),
        (PatternType.MATCH, "orders", {EVERYWHERE, ORDERS, ORD, ORDERS_PREFIX}),
        (PatternType.MATCH, "orders-2", {EVERYWHERE, ORD, ORDERS_PREFIX}),
        (PatternType.MATCH, "or", {EVERYWHERE}),
        (PatternType.MATCH, "*", {EVERYWHERE}),
        (LITERAL, None, {EVERYWHERE, ORDERS}),
        (LITERAL, "orders", {ORDERS}),
        (LITERAL, "*", {EVERYWHERE}),
        (PREFIXED, None, {ORD, ORDERS_PREFIX}),
        (PREFIXED, "orders", {ORDERS_PREFIX}),
        (PREFIXED, "orders-2", set()),
    ],
)
def test_filters_by_pattern(pattern: PatternType, name: str | None, found: set[Acl]) -> None:
    wanted = AclFilter(ResourceType.TOPIC, name, pattern)
    assert {acl for acl in PATTERNS if wanted.matches(acl)} == found
    every_type = AclFilter(ResourceType.ANY, name, pattern)
    assert {acl for acl in PATTERNS if every_type.matches(acl)} - {GROUP} == found


ENTRIES = (
    allow(READ),
    allow(ALL),
    deny(READ),
    allow(READ, who="User:*"),
    allow(READ, host="10.0.0.1"),
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), {0, 1, 2, 3, 4}),
        (AclFilter(principal="User:alice"), {0, 1, 2, 4}),
        (AclFilter(principal="User:*"), {3}),
        (AclFilter(host="*"), {0, 1, 2, 3}),
        (AclFilter(host="10.0.0.1"), {4}),
        (AclFilter(operation=ALL), {1}),
        (AclFilter(operation=READ), {0, 2, 3, 4}),
        (AclFilter(operation=WRITE), set()),
        (AclFilter(permission=PermissionType.DENY), {2}),
    ],
)
def test_filters_by_entry_take_wildcards_for_themselves(wanted: AclFilter, found: set[int]) -> None:
    assert {number for number, acl in enumerate(ENTRIES) if wanted.matches(acl)} == found


def exactly(acl: Acl) -> AclFilter:
    return AclFilter(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )


@given(acls, acls)
def test_a_filter_that_says_everything_finds_one_acl(acl: Acl, other: Acl) -> None:
    wanted = exactly(acl)
    assert wanted.only() == acl
    assert wanted.matches(acl)
    assert wanted.matches(other) == (acl == other)


@pytest.mark.parametrize(
    "wanted",
    [
        AclFilter(),
        AclFilter(ResourceType.TOPIC, "a", PatternType.MATCH, "User:a", "*", READ, PermissionType.DENY),
        AclFilter(ResourceType.TOPIC, "a", LITERAL, "User:a", "*", AclOperation.ANY, PermissionType.DENY),
        AclFilter(ResourceType.TOPIC, "a", LITERAL, "User:a", None, READ, PermissionType.DENY),
    ],
)
def test_a_filter_that_leaves_something_open_may_find_several(wanted: AclFilter) -> None:
    assert wanted.only() is None


@pytest.mark.parametrize(
    ("acl", "problem"),
    [
        (allow(READ), None),
        (allow(READ, "*"), None),
        (allow(READ, who="Role:a:b"), None),
        (allow(READ, who="User:"), None),
        (allow(AclOperation.CREATE_TOKENS), None),
        (allow(READ, host=""), None),
        (allow(READ, "kafka-cluster", resource_type=ResourceType.CLUSTER), None),
        (allow(READ, "kafka-cluster", resource_type=ResourceType.CLUSTER, pattern=PREFIXED), None),
        (
            allow(READ, "*", resource_type=ResourceType.CLUSTER),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (
            allow(READ, "kafka", resource_type=ResourceType.CLUSTER, pattern=PREFIXED),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (allow(READ, ""), "Invalid empty resource name"),
        (allow(READ, "", pattern=PREFIXED), "Invalid empty resource name"),
        (allow(READ, resource_type=ResourceType.ANY), "Invalid resourceType ANY"),
        (allow(READ, resource_type=ResourceType.UNKNOWN), "Invalid resourceType UNKNOWN"),
        (allow(READ, pattern=PatternType.MATCH), "Invalid patternType MATCH"),
        (allow(READ, pattern=PatternType.ANY), "Invalid patternType ANY"),
        (allow(AclOperation.ANY), "Invalid operation ANY"),
        (allow(AclOperation.UNKNOWN), "Invalid operation UNKNOWN"),
        (allow(READ, permission=PermissionType.ANY), "Invalid permissionType ANY"),
        (
            allow(READ, who="alice"),
            "Could not parse principal from `alice` "
            "(no colon is present separating the principal type from the principal name)",
        ),
    ],
)
def test_an_acl_is_checked(acl: Acl, problem: str | None) -> None:
    assert acl_problem(acl) == problem


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (AclFilter(), None),
        (AclFilter(pattern_type=PatternType.MATCH), None),
        (AclFilter(ResourceType.UNKNOWN), "Unknown patternFilter."),
        (AclFilter(pattern_type=PatternType.UNKNOWN), "Unknown patternFilter."),
        (AclFilter(operation=AclOperation.UNKNOWN), "Unknown entryFilter."),
        (AclFilter(permission=PermissionType.UNKNOWN), "Unknown entryFilter."),
    ],
)
def test_a_filter_is_checked(wanted: AclFilter, problem: str | None) -> None:
    assert filter_problem(wanted) == problem
