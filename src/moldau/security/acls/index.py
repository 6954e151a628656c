"""All ACLs, laid out for the question who may do what. An index never changes: changes make another one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from moldau.security.acls.bindings import Acl
from moldau.security.acls.vocabulary import (
    IMPLIED_BY,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)

Group = TypeVar("Group")

_NOTHING_IMPLIES: frozenset[AclOperation] = frozenset()
_ALL, _ALLOW, _DENY, _LITERAL, _PREFIXED = (  # looking up members of an enum would take most of the time
    AclOperation.ALL,
    PermissionType.ALLOW,
    PermissionType.DENY,
    PatternType.LITERAL,
    PatternType.PREFIXED,
)


@dataclass(frozen=True, slots=True)
class PatternAcls:
    """ACLs of one type of resource, by the names of their patterns."""

    literal: Mapping[str, tuple[Acl, ...]] = field(default_factory=dict)
    prefixed: Mapping[str, tuple[Acl, ...]] = field(default_factory=dict)
    prefix_lengths: Mapping[int, int] = field(default_factory=dict)
    """Of the prefixes, ascending, and how many have each: a name is cut to it and looked up, however many these are."""

    def __len__(self) -> int:
        return len(self.literal) + len(self.prefixed)

    def concerning(self, name: str) -> Iterator[tuple[Acl, ...]]:
        """All ACLs whose patterns match the name of a resource."""
        for literal in (name, WILDCARD):
            if literal in self.literal:
                yield self.literal[literal]
        for length in self.prefix_lengths:
            if length > len(name):
                return
            acls = self.prefixed.get(name[:length])
            if acls is not None:
                yield acls

    def every(self) -> Iterator[Acl]:
        for acls in (self.literal, self.prefixed):
            for named in acls.values():
                yield from named

    def changed(self, removed: Collection[Acl], added: Collection[Acl]) -> PatternAcls:
        literal = _renamed(self.literal, _LITERAL, removed, added)
        prefixed = _renamed(self.prefixed, _PREFIXED, removed, added)
        if prefixed is self.prefixed:
            return PatternAcls(literal, prefixed, self.prefix_lengths)
        touched = {acl.resource_name for acls in (removed, added) for acl in acls if acl.pattern_type is _PREFIXED}
        lengths = dict(self.prefix_lengths)
        for name in touched:
            lengths[len(name)] = lengths.get(len(name), 0) + (name in prefixed) - (name in self.prefixed)
        return PatternAcls(
            literal, prefixed, {length: lengths[length] for length in sorted(lengths) if lengths[length]}
        )


def _renamed(
    acls: Mapping[str, tuple[Acl, ...]], kind: PatternType, removed: Iterable[Acl], added: Iterable[Acl]
) -> Mapping[str, tuple[Acl, ...]]:
    """The same mapping if nothing of this kind changes. A name's ACLs are copied once, however many of them change."""
    gone = _grouped(removed, lambda acl: acl.resource_name if acl.pattern_type is kind else None)
    new = _grouped(added, lambda acl: acl.resource_name if acl.pattern_type is kind else None)
    if not gone and not new:
        return acls
    changed = dict(acls)
    for name in gone.keys() | new.keys():
        left = acls.get(name, ())
        if name in gone:
            leaving = set(gone[name])
            left = tuple(acl for acl in left if acl not in leaving)
        left += tuple(new.get(name, ()))
        if left:
            changed[name] = left
        else:
            del changed[name]
    return changed


def _grouped(acls: Iterable[Acl], group: Callable[[Acl], Group | None]) -> dict[Group, list[Acl]]:
    """Those that belong to a group, by it."""
    groups: dict[Group, list[Acl]] = {}
    for acl in acls:
        key = group(acl)
        if key is not None:
            groups.setdefault(key, []).append(acl)
    return groups


Section: TypeAlias = tuple[ResourceType, str | None]
"""A type of resource, and whom the ACLs are for; None for everybody's."""


@dataclass(frozen=True, slots=True)
class AclIndex:
    """Every ACL twice: with those of its principal, which decide, and with all of its type, for "is there any?"."""

    sections: Mapping[Section, PatternAcls] = field(default_factory=dict)

    def changed(self, removed: Collection[Acl], added: Collection[Acl]) -> AclIndex:
        """What is removed has to be here. What else is here stays, whatever it has in common with what goes."""
        sections = dict(self.sections)
        groupings: tuple[Callable[[Acl], Section], ...] = (_of_principal, _of_everybody)
        for section_of in groupings:
            gone, new = _grouped(removed, section_of), _grouped(added, section_of)
            for section in gone.keys() | new.keys():
                acls = sections.get(section, _NONE).changed(gone.get(section, ()), new.get(section, ()))
                if acls:
                    sections[section] = acls
                else:
                    del sections[section]
        return AclIndex(sections)

    def find(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Acl | None:
        """The ACL that decides: one that denies, or else one that allows, or else none."""
        allowing = None
        for acls in self._of(principal, resource_type):
            for concerning in acls.concerning(name):
                for acl in concerning:
                    if not _applies(acl, host, operation):
                        continue
                    if acl.permission is _DENY:
                        return acl
                    allowing = acl
        return allowing

    def has_any(self, resource_type: ResourceType, name: str) -> bool:
        """Whether there are ACLs for a resource, whomever they are about."""
        return any(True for _ in self.sections.get((resource_type, None), _NONE).concerning(name))

    def find_on_any_resource(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> Acl | None:
        """The ACL that allows something with some resource of a type, unless others deny all that it is about.

        As Kafka's Authorizer.authorizeByResourceType no operation implies another here. The ACL may be one that denies:
        that for all resources of the type.
        """
        allowing: list[Acl] = []
        denied: dict[PatternType, set[str]] = {_LITERAL: set(), _PREFIXED: set()}
        for acls in self._of(principal, resource_type):
            for acl in acls.every():
                if acl.host not in (host, WILDCARD) or acl.operation not in (operation, _ALL):
                    continue
                if acl.permission is _ALLOW:
                    allowing.append(acl)
                elif _is_for_all(acl):
                    return acl
                else:
                    denied[acl.pattern_type].add(acl.resource_name)
        lengths = sorted({len(prefix) for prefix in denied[_PREFIXED]})
        for acl in allowing:
            name = acl.resource_name
            if _is_for_all(acl) or not (
                (acl.pattern_type is _LITERAL and name in denied[_LITERAL])
                or any(name[:length] in denied[_PREFIXED] for length in lengths if length <= len(name))
            ):
                return acl
        return None

    def _of(self, principal: str, resource_type: ResourceType) -> Iterator[PatternAcls]:
        for each in (principal, WILDCARD_PRINCIPAL):
            acls = self.sections.get((resource_type, each))
            if acls is not None:
                yield acls


_NONE = PatternAcls()


def _of_principal(acl: Acl) -> Section:
    return acl.resource_type, acl.principal


def _of_everybody(acl: Acl) -> Section:
    return acl.resource_type, None


def _is_for_all(acl: Acl) -> bool:
    return acl.pattern_type is _LITERAL and acl.resource_name == WILDCARD


def _applies(acl: Acl, host: str, operation: AclOperation) -> bool:
    if acl.host not in (WILDCARD, host):
        return False
    if acl.operation in (operation, _ALL):
        return True
    return acl.permission is _ALLOW and acl.operation in IMPLIED_BY.get(operation, _NOTHING_IMPLIES)
