"""`moldau acls --add …`, as Apache Kafka's tool does it."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.cli.acls.command import check, deleted, described
from moldau.cli.acls.words import Acl, Filter, operation
from moldau.cli.failures import OK, UsageError, meant
from moldau.cli.kafka.acls.wanted import Entry, Pattern, Wanted, patterns, wanted
from moldau.cli.kafka.bootstrap import add_bootstrap_options, open_bootstrap
from moldau.cli.parsing import Parser
from moldau.client.cluster import Cluster
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.wire.messages import CreateAclsRequest, CreateAclsResponse
from moldau.wire.messages.create_acls import AclCreation

EXAMPLES = """\
examples:
  moldau acls --list --topic orders
  moldau acls --add --allow-principal User:alice --producer --topic orders
  moldau acls --add --allow-principal User:bob --consumer --topic sales- --group '*' --resource-pattern-type prefixed
  moldau acls --remove --force --topic orders

Our own form of this tool, which takes less to type: moldau acls add --help
"""
ACTIONS = ("--list", "--add", "--remove")
PATTERN_TYPES = ("any", "match", "literal", "prefixed")
# Which options exclude which others.
APART: Mapping[str, tuple[str, ...]] = {
    "--list": ("--producer", "--consumer", "--allow-host", "--allow-principal", "--deny-host", "--deny-principal"),
    "--producer": ("--operation", "--deny-principal", "--deny-host"),
    "--consumer": ("--operation", "--deny-principal", "--deny-host"),
}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.list:
        return list_acls(options)
    return add_acls(options) if options.add else remove_acls(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau acls", description="This tool helps to manage acls on kafka.", epilog=EXAMPLES, add_help=True
    )
    actions = parser.add_argument_group("actions, of which one is needed")
    actions.add_argument("--list", action="store_true", help="the ACLs there are, or those of resources")
    actions.add_argument("--add", action="store_true", help="new ACLs")
    actions.add_argument("--remove", action="store_true", help="take ACLs away")
    several: dict[str, Any] = {"action": "append", "default": []}
    who = parser.add_argument_group("who, from where, and what")
    for kind, does in (("allow", "may"), ("deny", "may not")):
        who.add_argument(f"--{kind}-principal", metavar="TYPE:NAME", type=principal, help=f"who {does}", **several)
        who.add_argument(f"--{kind}-host", metavar="ADDRESS", type=str.strip, help="where from (default: *)", **several)
    who.add_argument("--operation", metavar="NAME", type=operation, help="such as Read (default: All)", **several)
    who.add_argument("--producer", action="store_true", help="all that a producer needs")
    who.add_argument("--consumer", action="store_true", help="all that a consumer needs")
    who.add_argument("--idempotent", action="store_true", help="of a producer that is idempotent")
    who.add_argument("--principal", metavar="TYPE:NAME", type=principal, help="only list those of it", **several)
    _add_resources(parser, several)
    parser.add_argument("--force", action="store_true", help="do not ask")
    add_bootstrap_options(parser)
    options = parser.parse_args(arguments)
    _check(options)
    return options


def _add_resources(parser: Parser, several: Mapping[str, Any]) -> None:
    about = parser.add_argument_group("resources", "each may be repeated; * is all of them")
    about.add_argument("--topic", metavar="NAME", **several)
    about.add_argument("--group", metavar="NAME", **several)
    about.add_argument("--transactional-id", metavar="ID", **several)
    about.add_argument("--delegation-token", metavar="ID", **several)
    about.add_argument("--user-principal", metavar="TYPE:NAME", help="whose tokens are meant", **several)
    about.add_argument("--cluster", action="store_true")
    about.add_argument(
        "--resource-pattern-type",
        metavar="TYPE",
        type=pattern_type,
        default=PatternType.LITERAL,
        help=f"{', '.join(PATTERN_TYPES)} (default: literal)",
    )


def principal(text: str) -> str:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise ArgumentTypeError(f"expected a string in format principalType:principalName but got {text}")
    return f"{kind}:{name}"


def pattern_type(text: str) -> PatternType:
    if text.lower() not in PATTERN_TYPES:
        near = meant(text.lower(), PATTERN_TYPES) or f"; expected {', '.join(PATTERN_TYPES)}"
        raise ArgumentTypeError(f"Unknown resource-pattern-type: {text}{near}")
    return PatternType[text.upper()]


def _check(options: Namespace) -> None:
    if sum(_given(options, each) for each in ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove.")
    for option, others in APART.items():
        for other in others:
            if _given(options, option) and _given(options, other):
                raise UsageError(f'Option "[{option[2:]}]" can\'t be used with option "[{other[2:]}]"')
    if options.principal and not options.list:
        raise UsageError("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        raise UsageError("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise UsageError("The --idempotent option is only available if --producer is set")
    is_alone = options.consumer and not options.producer
    if (options.consumer and not (options.topic and options.group)) or (
        is_alone and (options.cluster or options.transactional_id)
    ):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
            " should be specified."
        )


def _given(options: Namespace, option: str) -> bool:
    return bool(getattr(options, option.removeprefix("--").replace("-", "_")))


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
    request = CreateAclsRequest(
        [AclCreation(*resource, each.principal, each.host, each.operation, each.permission) for each in new]
    )
    for result in client.ask(request, CreateAclsResponse).results:
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
