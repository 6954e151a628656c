"""`moldau acls --add …`, as Apache Kafka's tool does it."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from moldau.cli.acls.acting import check, created, deleted, described
from moldau.cli.acls.words import Acl, Filter
from moldau.cli.failures import OK, UsageError
from moldau.cli.kafka.acls.wanted import Entry, Pattern, Wanted, patterns, wanted
from moldau.cli.kafka.bootstrap import open_bootstrap
from moldau.client.cluster import Cluster
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.wire.messages.create_acls import AclCreation


def run(options: Namespace) -> int:
    if options.list:
        return list_acls(options)
    return add_acls(options) if options.add else remove_acls(options)


def list_acls(options: Namespace) -> int:
    found = patterns(options)
    with open_bootstrap(options) as client:
        there = grouped(described(client, [_everything(each) for each in found] or [ANYTHING]))
    if not options.principal:
        _print(there)
    for who in dict.fromkeys(options.principal):
        print(f"ACLs for principal `{who}`")
        own = {resource: [each for each in entries if each.principal == who] for resource, entries in there.items()}
        _print({resource: entries for resource, entries in own.items() if entries})
    return OK


def _print(there: Wanted) -> None:
    for resource, entries in there.items():
        print(f"Current ACLs for resource `{resource}`:\n{_indented(entries)}\n")


def _indented(entries: Sequence[Entry]) -> str:
    return "\n".join(f"\t{each}" for each in entries)


ANYTHING = Filter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, PermissionType.ANY)


def _everything(resource: Pattern) -> Filter:
    return Filter(*resource, None, None, AclOperation.ANY, PermissionType.ANY)


def _exactly(resource: Pattern, entry: Entry) -> Filter:
    return Filter(*resource, entry.principal, entry.host, entry.operation, entry.permission)


def grouped(found: Sequence[Acl]) -> Wanted:
    there: Wanted = {}
    for acl in found:
        entry = Entry(acl.principal, acl.host, acl.operation, acl.permission)
        there.setdefault(Pattern(acl.kind, acl.name, acl.pattern), []).append(entry)
    return there


def add_acls(options: Namespace) -> int:
    if options.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        name = options.resource_pattern_type.name
        raise UsageError(f"A '--resource-pattern-type' value of '{name}' is not valid when adding acls.")
    new = wanted(options)
    if not all(new.values()):
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    with open_bootstrap(options) as client:
        for resource, entries in new.items():
            _add(client, resource, entries)
    return OK


def _add(client: Cluster, resource: Pattern, entries: Sequence[Entry]) -> None:
    there = grouped(described(client, [_everything(resource)])).get(resource, [])
    for each in entries:
        if each in there:
            print(f"Acl (pattern={resource}, entry={each}) already exists.")
    new = [each for each in entries if each not in there]
    if not new:
        return
    print(f"Adding ACLs for resource `{resource}`: \n {_indented(new)}\n")
    wanted = [AclCreation(*resource, each.principal, each.host, each.operation, each.permission) for each in new]
    for result in created(client, wanted):
        check(result.error_code, result.error_message)


def remove_acls(options: Namespace) -> int:
    with open_bootstrap(options) as client:
        for resource, entries in wanted(options).items():
            question = f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)"
            if entries:
                question = (
                    f"Are you sure you want to remove ACLs: \n {_indented(entries)}\n"
                    f" from resource filter `{resource}`? (y/n)"
                )
            if options.force or _is_sure(question):
                deleted(client, [_exactly(resource, each) for each in entries] or [_everything(resource)])
    return OK


def _is_sure(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether to remove ACLs; say --force")
    print(question)
    return sys.stdin.readline().strip().lower() == "y"
