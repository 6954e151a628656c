"""`moldau acls`: list, add and remove ACLs.

In the protocol itself, for the client library knows neither all resources nor all operations.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from moldau.cli.acls.words import Acl, Filter, acl_of, acls, filters, new_host, new_principal, operation, principal
from moldau.cli.actions import action_parser, run_action
from moldau.cli.connection import add_connection_options
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.output import add_output_option, print_rows
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
from moldau.wire.messages.create_acls import AclCreation
from moldau.wire.messages.delete_acls import DeleteAclsFilter

EXAMPLES = """\
What is denied is denied, whatever else is allowed; what nobody allows is denied too. --producer is write, describe and
create on topics; --consumer is read and describe on topics, and read on groups.

examples:
  moldau acls list
  moldau acls list --topic orders                              every ACL that orders is affected by
  moldau acls add --principal alice --producer --topic orders
  moldau acls add --principal bob --consumer --topic sales- --group sales- --prefixed
  moldau acls add --deny --principal mallory --host 10.0.0.7 --operation read --topic '*'
  moldau acls add --principal ops --operation alter-configs --cluster
  moldau acls remove --principal alice --topic orders --dry-run
  moldau acls remove --principal alice --topic orders
"""

EVERYTHING = Filter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, PermissionType.ANY)
COLUMNS = ("permission", "principal", "host", "operation", "type", "name", "pattern")


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("acls", "List, add and remove ACLs: who may do what, and from where.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the ACLs there are, or those about something")
    listing.set_defaults(action=list_acls)
    add_output_option(listing)
    adding = actions.add_parser("add", help="new ACLs; one that is there already stays")
    adding.set_defaults(action=add_acls)
    removing = actions.add_parser("remove", help="take away the ACLs that fit")
    removing.set_defaults(action=remove_acls)
    removing.add_argument("--all", action="store_true", help="every ACL there is, if nothing else is said")
    removing.add_argument("--dry-run", action="store_true", help="only show which they are")
    for action in (listing, adding, removing):
        add_meaning(action, is_adding=action is adding)
        add_connection_options(action)
    return parser.parse_args(arguments)


def add_meaning(parser: ArgumentParser, *, is_adding: bool) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--allow", action="store_true", help="the default" if is_adding else "only what is allowed")
    which.add_argument("--deny", action="store_true", help="forbid it instead" if is_adding else "only what is denied")
    several: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument(
        "--principal",
        metavar="NAME",
        type=new_principal if is_adding else principal,
        required=is_adding,
        help="who; alice is User:alice, and User:* is everybody",
        **several,
    )
    host = new_host if is_adding else str
    parser.add_argument("--host", metavar="ADDRESS", type=host, help="where from; default: anywhere", **several)
    parser.add_argument("--operation", metavar="NAME", type=operation, help="such as read, write or all", **several)
    parser.add_argument("--producer", action="store_true", help="all that a producer needs")
    parser.add_argument("--consumer", action="store_true", help="all that a consumer needs")
    about = parser.add_argument_group("resources", "each may be repeated; * is all of them")
    about.add_argument("--topic", metavar="NAME", **several)
    about.add_argument("--group", metavar="NAME", **several)
    about.add_argument("--transactional-id", metavar="NAME", **several)
    about.add_argument("--delegation-token", metavar="ID", **several)
    about.add_argument("--user-principal", metavar="NAME", type=principal, help="whose tokens are meant", **several)
    about.add_argument("--cluster", action="store_true")
    about.add_argument("--prefixed", action="store_true", help="names are the beginnings of those that are meant")


def list_acls(options: Namespace) -> int:
    wanted = filters(options, pattern=PatternType.MATCH)
    with open_cluster(options) as client:
        found = described(client, wanted)
    print_rows([each.row() for each in found], columns=COLUMNS, output=options.output)
    return OK


def add_acls(options: Namespace) -> int:
    wanted = acls(options)
    with open_cluster(options) as client:
        results = client.ask(CreateAclsRequest([AclCreation(*each) for each in wanted]), CreateAclsResponse).results
    exit_code = OK
    for acl, result in zip(wanted, results, strict=True):
        if result.error_code == ErrorCode.NONE:
            print(f"added {acl}")
        else:
            print(f"moldau acls: {acl}: {refusal(result.error_code, result.error_message)}", file=sys.stderr)
            exit_code = FAILED
    return exit_code


def remove_acls(options: Namespace) -> int:
    """Only names as they are written: to take away by a prefix, what has that prefix as its own name is meant."""
    wanted = filters(options, pattern=PatternType.LITERAL)
    if wanted == [EVERYTHING] and not options.all:
        raise UsageError("that would remove every ACL; say which are meant, or --all")
    with open_cluster(options) as client:
        found = described(client, wanted) if options.dry_run else deleted(client, wanted)
    for acl in found:
        print(f"{'would remove' if options.dry_run else 'removed'} {acl}")
    if not found:
        raise CommandFailed("there is no such ACL; `moldau acls list` shows what there is")
    return OK


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


def deleted(client: Cluster, wanted: Sequence[Filter]) -> list[Acl]:
    request = DeleteAclsRequest([DeleteAclsFilter(*each) for each in wanted])
    found: set[Acl] = set()
    for result in client.ask(request, DeleteAclsResponse).filter_results:
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
