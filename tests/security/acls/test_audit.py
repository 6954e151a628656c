"""The line of Kafka's StandardAuthorizer, word for word."""

from __future__ import annotations

import pytest

from moldau.security.acls.audit import NAME_CHARS_MAX, acl_change_message, audit_message
from moldau.security.acls.authorizer import DEFAULT_DENY, SUPER_USER, MatchingRule
from moldau.security.acls.vocabulary import AclOperation, ResourceType
from tests.security.acls.bindings import ALICE, HOST, deny


def message(rule: MatchingRule, name: str = "orders") -> str:
    return audit_message(
        rule,
        principal=ALICE,
        host=HOST,
        operation=AclOperation.WRITE,
        resource_type=ResourceType.TRANSACTIONAL_ID,
        resource_name=name,
        request="Produce",
        references=2,
    )


def test_a_denial_names_the_acl() -> None:
    rule = MatchingRule(False, acl=deny(AclOperation.WRITE, resource_type=ResourceType.TRANSACTIONAL_ID))
    assert message(rule) == (
        "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 "
        "on resource = TransactionalId:LITERAL:orders for request = Produce with resourceRefCount = 2 "
        "based on rule MatchingAcl(acl=StandardAcl[resourceType=TRANSACTIONAL_ID, resourceName=orders, "
        "patternType=LITERAL, principal=User:alice, host=*, operation=WRITE, permissionType=DENY])"
    )


def test_what_no_acl_decided_is_told_by_name() -> None:
    assert message(DEFAULT_DENY).endswith("based on rule DefaultDeny")
    assert " is Allowed " in message(SUPER_USER)
    assert message(SUPER_USER).endswith("based on rule SuperUser")


def test_a_name_makes_no_line_of_its_own() -> None:
    assert "LITERAL:a\\nPrincipal = User:bob is Allowed for" in message(
        DEFAULT_DENY, "a\nPrincipal = User:bob is Allowed"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x" * NAME_CHARS_MAX, "x" * NAME_CHARS_MAX),
        ("x" * 32_767, "x" * NAME_CHARS_MAX + "..."),
        ("\U000e0001" * 8_191, (r"\U000e0001" * 26)[:NAME_CHARS_MAX] + "..."),
    ],
    ids=["whole", "cut", "escaped and cut"],
)
def test_a_long_name_makes_no_long_line(name: str, shown: str) -> None:
    assert f"LITERAL:{shown} for request" in message(DEFAULT_DENY, name)


def test_a_change_names_the_acl_and_who_made_it() -> None:
    assert acl_change_message(deny(AclOperation.WRITE), "created", principal=ALICE, host=HOST) == (
        "Principal = User:alice created ACL = StandardAcl[resourceType=TOPIC, resourceName=orders, "
        "patternType=LITERAL, principal=User:alice, host=*, operation=WRITE, permissionType=DENY] from host = 10.0.0.1"
    )
