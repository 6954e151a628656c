"""Who may do what: Kafka's StandardAuthorizer, as a function of the ACLs and two settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from moldau.core.ids import AclId
from moldau.core.limits import AUTHORIZATION_CACHE_ENTRIES_MAX, AUTHORIZATION_CACHE_NAME_CHARS_MAX
from moldau.security.acls.bindings import Acl
from moldau.security.acls.index import AclIndex
from moldau.security.acls.vocabulary import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    PermissionType,
    ResourceType,
)
from moldau.security.principals import Principal, parse_principal

# Kafka's: whoever may do something with a resource that nobody has an ACL for may do it with any.
_HARDCODED_NAME = "hardcode"


@dataclass(frozen=True, slots=True)
class MatchingRule:
    """An answer, and why: an ACL, or what applies where there is none."""

    is_allowed: bool
    name: str = ""
    acl: Acl | None = None

    def __str__(self) -> str:
        return self.name if self.acl is None else f"MatchingAcl(acl={self.acl})"


SUPER_USER = MatchingRule(True, "SuperUser")
DEFAULT_ALLOW = MatchingRule(True, "DefaultAllow")
DEFAULT_DENY = MatchingRule(False, "DefaultDeny")

Question: TypeAlias = tuple[Principal, str, AclOperation, ResourceType, str | None]
"""Who from where, what, and with which resource; None for any of its type."""


def parse_super_users(text: str) -> frozenset[str]:
    """The value of super.users: principals between semicolons, for their names may have commas. ValueError."""
    users = [each.strip() for each in text.split(";")]
    return frozenset(str(parse_principal(each)) for each in users if each)


class Authorizer:
    """Answers are remembered until an ACL changes, so that the hot path is one look into a dictionary.

    The host is the client's address as Java prints it, see `hosts.host_address`: ACLs name it that way.
    """

    def __init__(
        self, *, super_users: frozenset[str] = frozenset(), allow_everyone_if_no_acl_found: bool = False
    ) -> None:
        self._super_users = super_users
        self._no_acl_rule = DEFAULT_ALLOW if allow_everyone_if_no_acl_found else DEFAULT_DENY
        self._acls: Mapping[AclId, Acl] = {}
        self._index = AclIndex()
        self._rules: dict[Question, MatchingRule] = {}

    def follow(self, acls: Mapping[AclId, Acl]) -> None:
        """These are the ACLs from now on: a mapping that nobody changes, as an image has it."""
        if acls is self._acls:
            return
        removed, added = _changes(self._acls, acls)
        if removed or added:
            self._index = self._index.changed(removed, added)
            self._rules.clear()
        self._acls = acls

    def authorize(
        self, principal: Principal, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        # The same look as in matching_rule, without the call to it, which would be a fifth of the time.
        rule = self._rules.get((principal, host, operation, resource_type, name))
        if rule is None:
            rule = self.matching_rule(principal, host, operation, resource_type, name)
        return rule.is_allowed

    def is_known_allowed(
        self, principal: Principal, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether it is remembered that this is allowed; of what has to be looked for, nothing is said."""
        rule = self._rules.get((principal, host, operation, resource_type, name))
        return rule is not None and rule.is_allowed

    def matching_rule(
        self, principal: Principal, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> MatchingRule:
        question = (principal, host, operation, resource_type, name)
        rule = self._rules.get(question)
        if rule is None:
            rule = self._find(str(principal), host, operation, resource_type, name)
            self._remember(question, rule)
        return rule

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any resource of a type, whether it exists or not, that the principal may do this with."""
        question = (principal, host, operation, resource_type, None)
        rule = self._rules.get(question)
        if rule is None:
            rule = self._find_on_any(str(principal), host, operation, resource_type)
            self._remember(question, rule)
        return rule.is_allowed

    def authorized_operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """The bit set of all that the principal may do with a resource."""
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.matching_rule(principal, host, operation, resource_type, name).is_allowed
        )

    def _find(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> MatchingRule:
        if principal in self._super_users:
            return SUPER_USER
        acl = self._index.find(principal, host, operation, resource_type, name)
        if acl is not None:
            return _rule_of(acl)
        return DEFAULT_DENY if self._index.has_any(resource_type, name) else self._no_acl_rule

    def _find_on_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> MatchingRule:
        rule = self._find(principal, host, operation, resource_type, _HARDCODED_NAME)
        if rule.is_allowed:
            return rule
        acl = self._index.find_on_any_resource(principal, host, operation, resource_type)
        return DEFAULT_DENY if acl is None else _rule_of(acl)

    def _remember(self, question: Question, rule: MatchingRule) -> None:
        name = question[-1]
        if name is not None and len(name) > AUTHORIZATION_CACHE_NAME_CHARS_MAX:
            return
        if len(self._rules) >= AUTHORIZATION_CACHE_ENTRIES_MAX:
            self._rules.clear()  # those that are asked for again come back for a few microseconds each
        self._rules[question] = rule


def _changes(before: Mapping[AclId, Acl], after: Mapping[AclId, Acl]) -> tuple[list[Acl], list[Acl]]:
    """What is gone and what is new. What both begin and end with is passed over, in microseconds for thousands.

    An image is a copy of the one before, in the same order: only what is between has to be looked at one by one.
    """
    old, new = list(before), list(after)
    same = _common(old, new)
    old, new = old[same:], new[same:]
    old.reverse()
    new.reverse()
    same = _common(old, new)
    removed = [before[acl_id] for acl_id in reversed(old[same:]) if acl_id not in after]
    added = [after[acl_id] for acl_id in reversed(new[same:]) if acl_id not in before]
    return removed, added


def _common(one: list[AclId], other: list[AclId]) -> int:
    """With how many both begin. Whole stretches are compared, which are the same objects."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _rule_of(acl: Acl) -> MatchingRule:
    return MatchingRule(acl.permission is PermissionType.ALLOW, acl=acl)
