"""`moldau acls`: list, add and remove ACLs.

In the protocol itself, for the client library knows neither all resources nor all operations.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence

from moldau.cli.acls.words import Acl, Filter, acl_of, acls, filters
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.output import Change, print_changes, print_rows
from moldau.cli.questions import ask
from moldau.cli.wire import open_cluster, refusal
from moldau.client.cluster import Cluster
from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from moldau.wire.messages.create_acls import AclCreation, AclCreationResult
from moldau.wire.messages.delete_acls import DeleteAclsFilter

EVERYTHING = Filter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, PermissionType.ANY)
COLUMNS = ("permission", "principal", "host", "operation", "type", "name", "pattern")


def list_acls(options: Namespace) -> int:
    wanted = filters(options, pattern=PatternType.MATCH)
    with open_cluster(options) as client:
        found = described(client, wanted)
    print_rows([each.row() for each in found], columns=COLUMNS, output=options.output)
    return OK


def add_acls(options: Namespace) -> int:
    wanted = acls(options)
    with open_cluster(options) as client:
        results = created(client, [AclCreation(*each) for each in wanted])
    changes, exit_code = [], OK
    for acl, result in zip(wanted, results, strict=True):
        if result.error_code == ErrorCode.NONE:
            changes.append(Change({**acl.row(), "done": "added"}, f"added {acl}"))
        else:
            told = refusal(result.error_code, result.error_message)
            changes.append(Change({**acl.row(), "error": told}))
            print(f"moldau acls: {acl}: {told}", file=sys.stderr)
            exit_code = FAILED
    print_changes(changes, output=options.output)
    return exit_code


def remove_acls(options: Namespace) -> int:
    """Only names as they are written: to take away by a prefix, what has that prefix as its own name is meant."""
    wanted = filters(options, pattern=PatternType.LITERAL)
    if wanted == [EVERYTHING] and not options.all:
        raise UsageError("that would remove every ACL; say which are meant, or --all")
    with open_cluster(options) as client:
        found = described(client, wanted)
        if not found:
            raise CommandFailed("there is no such ACL; `moldau acls list` shows what there is")
        if not options.dry_run:
            ask(question(found), yes=options.yes)
            found = deleted(client, wanted)
    done = "would remove" if options.dry_run else "removed"
    print_changes([Change({**acl.row(), "done": done}, f"{done} {acl}") for acl in found], output=options.output)
    return OK


def question(found: Sequence[Acl]) -> str:
    many = f"{len(found)} ACLs, such as" if len(found) > 1 else "the ACL"
    return f"remove {many} {found[0]}?"


def described(client: Cluster, wanted: Iterable[Filter]) -> list[Acl]:
    found: set[Acl] = set()
    for each in wanted:
        answer = client.ask(DescribeAclsRequest(*each), DescribeAclsResponse)
        check(answer.error_code, answer.error_message)
        for about in answer.resources:
            of = (about.resource_type, about.resource_name, about.pattern_type)
            for acl in about.acls:
                found.add(acl_of((*of, acl.principal, acl.host, acl.operation, acl.permission_type)))
    return ordered(found)


def created(client: Cluster, wanted: list[AclCreation]) -> list[AclCreationResult]:
    return client.ask_controller(
        CreateAclsRequest(wanted), CreateAclsResponse, codes=lambda found: [each.error_code for each in found.results]
    ).results


def deleted(client: Cluster, wanted: Sequence[Filter]) -> list[Acl]:
    request = DeleteAclsRequest([DeleteAclsFilter(*each) for each in wanted])
    found: set[Acl] = set()
    answer = client.ask_controller(
        request, DeleteAclsResponse, codes=lambda found: [each.error_code for each in found.filter_results]
    )
    for result in answer.filter_results:
        check(result.error_code, result.error_message)
        for acl in result.matching_acls:
            check(acl.error_code, acl.error_message)
            of = (acl.resource_type, acl.resource_name, acl.pattern_type)
            found.add(acl_of((*of, acl.principal, acl.host, acl.operation, acl.permission_type)))
    return ordered(found)


def ordered(found: Iterable[Acl]) -> list[Acl]:
    """By what they are about, and there what is denied before what is allowed."""
    return sorted(found, key=lambda acl: (acl.kind, acl.name, acl.pattern, acl.permission, acl.principal, acl))


def check(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise CommandFailed(refusal(code, message))
