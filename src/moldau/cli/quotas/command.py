"""The command line of `moldau quotas`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option

WORK = "moldau.cli.quotas.acting"
EXAMPLES = """\
An entity is user=NAME, client-id=NAME, both, or ip=ADDRESS; without a NAME it is the default of all that have
no quota of their own. Keys of users and client ids: producer_byte_rate, consumer_byte_rate, request_percentage,
controller_mutation_rate. Of an ip: connection_creation_rate.

examples:
  moldau quotas list
  moldau quotas list user=alice
  moldau quotas set user=alice producer_byte_rate=1MiB consumer_byte_rate=2MiB
  moldau quotas set user=alice client-id= request_percentage=25
  moldau quotas set client-id= producer_byte_rate=10MB
  moldau quotas set ip=10.0.0.7 connection_creation_rate=5
  moldau quotas delete user=alice producer_byte_rate
  moldau quotas delete user=alice
"""


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("quotas", "List, set and delete the limits of users, client ids and addresses.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the quotas there are")
    listing.set_defaults(action=ImportedAction(WORK, "list_quotas"))
    listing.add_argument("words", metavar="ENTITY", nargs="*", help="only those that have this in their entity")
    setting = actions.add_parser("set", help="new quotas of an entity, or other values of them")
    setting.set_defaults(action=ImportedAction(WORK, "set_quotas"))
    setting.add_argument(
        "words", metavar="ENTITY KEY=VALUE", nargs="+", help="such as user=alice producer_byte_rate=1MiB"
    )
    deleting = actions.add_parser("delete", help="remove some quotas of an entity, or all")
    deleting.set_defaults(action=ImportedAction(WORK, "delete_quotas"))
    deleting.add_argument("words", metavar="ENTITY KEY", nargs="+", help="default: every key that it has")
    for action in (listing, setting, deleting):
        add_output_option(action)
        add_connection_options(action)
    return parser.parse_args(arguments)
