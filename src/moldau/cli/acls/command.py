"""The command line of `moldau acls`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from moldau.cli.acls.words import new_host, new_principal, operation, principal
from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.completion.kinds import GROUP, TOPIC, TRANSACTIONAL_ID
from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.questions import add_yes_option

WORK = "moldau.cli.acls.acting"
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


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("acls", "List, add and remove ACLs: who may do what, and from where.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the ACLs there are, or those about something")
    listing.set_defaults(action=ImportedAction(WORK, "list_acls"))
    adding = actions.add_parser("add", help="new ACLs; one that is there already stays")
    adding.set_defaults(action=ImportedAction(WORK, "add_acls"))
    removing = actions.add_parser("remove", help="take away the ACLs that fit")
    removing.set_defaults(action=ImportedAction(WORK, "remove_acls"))
    removing.add_argument("--all", action="store_true", help="every ACL there is, if nothing else is said")
    removing.add_argument("--dry-run", action="store_true", help="only show which they are")
    add_yes_option(removing)
    for action in (listing, adding, removing):
        add_meaning(action, is_adding=action is adding)
        add_output_option(action)
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
    about.add_argument("--topic", metavar=TOPIC, **several)
    about.add_argument("--group", metavar=GROUP, **several)
    about.add_argument("--transactional-id", metavar=TRANSACTIONAL_ID, **several)
    about.add_argument("--delegation-token", metavar="ID", **several)
    about.add_argument("--user-principal", metavar="NAME", type=principal, help="whose tokens are meant", **several)
    about.add_argument("--cluster", action="store_true")
    about.add_argument("--prefixed", action="store_true", help="names are the beginnings of those that are meant")
