"""What ACLs mean: each rule of Kafka's StandardAuthorizer as a case, and any ACLs beside rules without an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.ids import AclId
from moldau.core.limits import AUTHORIZATION_CACHE_ENTRIES_MAX, AUTHORIZATION_CACHE_NAME_CHARS_MAX
from moldau.security.acls.authorizer import (
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    SUPER_USER,
    Authorizer,
    MatchingRule,
    parse_super_users,
)
from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import AclOperation, PatternType, ResourceType, bit_set
from moldau.security.principals import Principal
from tests.security.acls.bindings import (
    ALICE,
    BOB,
    HOST,
    OTHER_HOST,
    SUPER,
    acls,
    allow,
    deny,
    naive_answer,
    questions,
    with_ids,
)

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
PREFIXED = PatternType.PREFIXED
Question = tuple[Principal, str, AclOperation, ResourceType, str]


def authorizer(*acls: Acl, allow_everyone: bool = False) -> Authorizer:
    made = Authorizer(super_users=frozenset({"User:super"}), allow_everyone_if_no_acl_found=allow_everyone)
    made.follow(with_ids(acls))
    return made


def may(
    made: Authorizer,
    operation: AclOperation,
    name: str = "orders",
    *,
    who: Principal = ALICE,
    host: str = HOST,
    resource_type: ResourceType = TOPIC,
) -> bool:
    return made.authorize(who, host, operation, resource_type, name)


@pytest.mark.parametrize(
    ("given", "asked", "is_allowed"),
    [
        ([], READ, False),
        ([allow(READ)], READ, True),
        ([allow(READ)], WRITE, False),
        ([allow(AclOperation.ALL)], WRITE, True),
        ([allow(READ, "orders-2")], READ, False),
        ([allow(READ, "ord")], READ, False),
        ([allow(READ, "*")], READ, True),
        ([allow(READ, "ord", pattern=PREFIXED)], READ, True),
        ([allow(READ, "orders", pattern=PREFIXED)], READ, True),
        ([allow(READ, "orders-2", pattern=PREFIXED)], READ, False),
        ([allow(READ, "*", pattern=PREFIXED)], READ, False),
        ([allow(READ, who="User:*")], READ, True),
        ([allow(READ, who="User:bob")], READ, False),
        ([allow(READ, who="Role:alice")], READ, False),
        ([allow(READ, who="Role:*")], READ, False),
        ([allow(READ, host=HOST)], READ, True),
        ([allow(READ, host=OTHER_HOST)], READ, False),
        ([allow(READ, resource_type=GROUP)], READ, False),
        # What denies wins, whatever allows.
        ([allow(READ), deny(READ)], READ, False),
        ([allow(READ), deny(READ, "*")], READ, False),
        ([allow(READ), deny(READ, "o", pattern=PREFIXED)], READ, False),
        ([allow(READ), deny(AclOperation.ALL, who="User:*")], READ, False),
        ([allow(READ, "*", who="User:*"), deny(READ, who="User:bob")], READ, True),
        ([allow(READ), deny(READ, host=OTHER_HOST)], READ, True),
        ([allow(READ), deny(WRITE)], READ, True),
        # Some operations imply others, where they are allowed.
        ([allow(READ)], DESCRIBE, True),
        ([allow(WRITE)], DESCRIBE, True),
        ([allow(AclOperation.DELETE)], DESCRIBE, True),
        ([allow(AclOperation.ALTER)], DESCRIBE, True),
        ([allow(AclOperation.CREATE)], DESCRIBE, False),
        ([allow(AclOperation.ALTER_CONFIGS)], DESCRIBE, False),
        ([allow(AclOperation.ALTER_CONFIGS)], AclOperation.DESCRIBE_CONFIGS, True),
        ([allow(DESCRIBE)], READ, False),
        ([allow(DESCRIBE), deny(READ)], DESCRIBE, True),
        ([allow(READ), deny(DESCRIBE)], READ, True),
        ([allow(READ), deny(DESCRIBE)], DESCRIBE, False),
    ],
)
def test_a_principal_may(given: list[Acl], asked: AclOperation, is_allowed: bool) -> None:
    assert may(authorizer(*given), asked) is is_allowed


def test_super_users_may_do_everything() -> None:
    made = authorizer(deny(AclOperation.ALL, "*", who="User:*"))
    assert may(made, AclOperation.ALTER, who=SUPER)
    assert made.matching_rule(SUPER, HOST, READ, TOPIC, "orders") is SUPER_USER
    assert made.authorize_by_resource_type(SUPER, HOST, WRITE, TOPIC)
    assert not may(made, READ, who=Principal("Role", "super"))


def test_super_users_are_between_semicolons() -> None:
    assert parse_super_users(" User:CN=a,O=b ; ;User:c:d") == {"User:CN=a,O=b", "User:c:d"}
    assert parse_super_users("") == frozenset()
    with pytest.raises(ValueError, match="principalType:principalName but got alice"):
        parse_super_users("User:a;alice")


def test_everyone_may_use_what_has_no_acl_if_that_is_configured() -> None:
    made = authorizer(allow(READ, who="User:bob"), allow(READ, "log", pattern=PREFIXED), allow_everyone=True)
    assert may(made, READ, "other")
    assert not may(made, READ, "orders"), "somebody has an ACL for it"
    assert not may(made, WRITE, "logs"), "a pattern names it"
    assert may(made, READ, "orders", resource_type=GROUP), "which is another type"


def test_an_answer_tells_why() -> None:
    allowing, denying = allow(READ), deny(WRITE)
    made = authorizer(allowing, denying)
    assert made.matching_rule(ALICE, HOST, READ, TOPIC, "orders") == MatchingRule(True, acl=allowing)
    assert made.matching_rule(ALICE, HOST, WRITE, TOPIC, "orders") == MatchingRule(False, acl=denying)
    assert made.matching_rule(BOB, HOST, READ, TOPIC, "orders") is DEFAULT_DENY
    assert authorizer(allow_everyone=True).matching_rule(BOB, HOST, READ, TOPIC, "x") is DEFAULT_ALLOW


@pytest.mark.parametrize(
    ("given", "is_allowed"),
    [
        ([], False),
        ([allow(WRITE)], True),
        ([allow(READ)], False),
        ([allow(AclOperation.ALL)], True),
        ([allow(WRITE, host=OTHER_HOST)], False),
        ([allow(WRITE, who="User:*")], True),
        ([allow(WRITE, resource_type=GROUP)], False),
        ([allow(WRITE), deny(WRITE)], False),
        ([allow(WRITE), deny(WRITE, "*")], False),
        ([allow(WRITE), deny(WRITE, "ord", pattern=PREFIXED)], False),
        ([allow(WRITE), deny(WRITE, "orders-2")], True),
        ([allow(WRITE, "*"), deny(WRITE, "*")], False),
        ([allow(WRITE, "*"), deny(WRITE)], True),
        ([allow(WRITE, "ord", pattern=PREFIXED), deny(WRITE)], True),
        ([allow(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "o", pattern=PREFIXED)], False),
        ([allow(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "ord", pattern=PREFIXED)], False),
        ([allow(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "orders", pattern=PREFIXED)], True),
    ],
)
def test_some_topic_may_be_written(given: list[Acl], is_allowed: bool) -> None:
    assert authorizer(*given).authorize_by_resource_type(ALICE, HOST, WRITE, TOPIC) is is_allowed


def test_any_topic_may_be_written_if_there_is_no_acl_and_everyone_may() -> None:
    assert authorizer(deny(WRITE), allow_everyone=True).authorize_by_resource_type(ALICE, HOST, WRITE, TOPIC)


def test_no_operation_implies_another_on_any_resource() -> None:
    assert not authorizer(allow(READ)).authorize_by_resource_type(ALICE, HOST, DESCRIBE, TOPIC)


def test_all_operations_of_a_resource_are_told() -> None:
    made = authorizer(allow(READ), allow(AclOperation.ALTER_CONFIGS), allow(AclOperation.CREATE_TOKENS))
    expected = bit_set(READ, DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    assert made.authorized_operations(ALICE, HOST, TOPIC, "orders") == expected
    assert made.authorized_operations(BOB, HOST, TOPIC, "orders") == 0


def test_a_removed_acl_leaves_the_others_of_its_resource() -> None:
    """CVE-2024-27309: Kafka, while it left ZooKeeper, acted as if one ACL were left when one of several was removed."""
    every = [allow(READ, who="User:bob"), deny(READ, host=OTHER_HOST, who="User:bob"), allow(READ)]
    *kept, gone = with_ids(every).items()
    made = Authorizer(allow_everyone_if_no_acl_found=True)
    made.follow(dict([*kept, gone]))
    assert may(made, READ)
    made.follow(dict(kept))
    assert not may(made, READ), "others have ACLs for it"
    assert may(made, READ, who=BOB)
    assert not may(made, READ, who=BOB, host=OTHER_HOST)
    made.follow({})
    assert may(made, READ)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.lists(acls, max_size=12, unique=True), st.lists(questions, max_size=8)), max_size=4),
    st.booleans(),
)
def test_the_index_agrees_with_the_rules(
    stages: Sequence[tuple[list[Acl], list[Question]]], allow_everyone: bool
) -> None:
    """Also after any change: each stage has other ACLs, of which some were there before."""
    made = authorizer(allow_everyone=allow_everyone)
    for every, asked in stages:
        made.follow({id_of(acl): acl for acl in every})
        for question in [*asked, *asked]:
            expected = naive_answer(every, question, super_users=["User:super"], allow_everyone=allow_everyone)
            assert made.authorize(*question) is expected, question


def id_of(acl: Acl) -> AclId:
    return AclId(str(acl).encode())


def test_what_is_remembered_is_bounded() -> None:
    made = authorizer(allow(READ, "*"))
    for number in range(AUTHORIZATION_CACHE_ENTRIES_MAX + 10):
        assert may(made, READ, f"topic-{number}")
    assert len(made._rules) <= AUTHORIZATION_CACHE_ENTRIES_MAX
    before = len(made._rules)
    assert may(made, READ, "x" * (AUTHORIZATION_CACHE_NAME_CHARS_MAX + 1))
    assert len(made._rules) == before


def test_a_change_of_acls_forgets_all_answers() -> None:
    made = authorizer()
    assert not may(made, READ)
    made.follow(with_ids([allow(READ)]))
    assert may(made, READ)


def test_one_change_among_many_does_not_cost_as_much_as_all_of_them() -> None:
    """The event loop follows: nobody is answered meanwhile."""
    every = with_ids([allow(READ, f"topic-{number}") for number in range(20_000)])
    more = {**every, AclId(b"new"): allow(READ, "another-topic")}
    less = {acl_id: acl for acl_id, acl in every.items() if acl_id != list(every)[10_000]}
    made = Authorizer()

    def took_s(acls: Mapping[AclId, Acl]) -> float:
        begun_s = process_time()
        made.follow(acls)
        return process_time() - begun_s

    whole_s = took_s(every)
    assert min(took_s(each) for each in (more, every, less, every, more)) < whole_s / 10
    assert may(made, READ, "another-topic")
    made.follow(less)
    assert not may(made, READ, "topic-10000")
    assert not may(made, READ, "another-topic")
    assert may(made, READ, "topic-10001")
