"""`moldau groups`: list, describe, lag, reset, delete and delete-offsets."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.completion.kinds import GROUP, STATE, TOPIC, TOPIC_PARTITIONS, TYPE
from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser
from moldau.cli.questions import add_yes_option

HELP = """\
--to: earliest, latest, current (where it is, or the end where it is nowhere), 47 (that offset),
      +10 or -10 (from where it is), @-1h (ago; s, m, h, d),
      @2026-01-31 or @2026-01-31T12:00:00 (UTC), @1700000000000 (milliseconds)
"""
CHANGING, SHOWING = "moldau.cli.groups.changing", "moldau.cli.groups.showing"
RESETS = f"""\
{HELP}
examples:
  moldau groups reset billing --topic orders --to earliest --dry-run
  moldau groups reset billing --topic orders:0,1 --topic returns --to @-1h
  moldau groups reset billing --all-topics --to -100 --yes
"""
EXAMPLES = f"""\
{HELP}
examples:
  moldau groups list
  moldau groups list --state stable -o json
  moldau groups describe billing
  moldau groups lag billing -o wide
  moldau groups reset billing --topic orders --to earliest --dry-run
  moldau groups reset billing --topic orders:0,1 --to @-1h
  moldau groups reset billing --all-topics --to -100 --yes
  moldau groups delete-offsets billing --topic returns
  moldau groups delete billing mailing

Options of kafka-groups.sh work, too: moldau groups --list --consumer. Those of kafka-consumer-groups.sh are in
`moldau consumer-groups`.
"""


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("groups", "Groups of consumers: who they are, how far behind, where they read on.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the groups there are, with their lag")
    listing.set_defaults(action=ImportedAction(SHOWING, "list_all"))
    listing.add_argument("--state", metavar=STATE, action="append", default=[], help="only those; may be repeated")
    listing.add_argument("--type", metavar=TYPE, action="append", default=[], help="only those; may be repeated")
    describing = actions.add_parser("describe", help="state, members, and the lag of each partition")
    describing.set_defaults(action=ImportedAction(SHOWING, "describe"))
    describing.add_argument("groups", metavar=GROUP, nargs="+")
    lagging = actions.add_parser("lag", help="the lag of each partition, in one table")
    lagging.set_defaults(action=ImportedAction(SHOWING, "show_lag"))
    lagging.add_argument("groups", metavar=GROUP, nargs="*", help="default: all")
    lagging.add_argument("--topic", metavar=TOPIC, action="append", default=[], help="only this; may be repeated")
    changing = _add_changes(
        actions.add_parser("reset", help="say where a group without members reads on", epilog=RESETS)
    )
    deleting = actions.add_parser("delete", help="remove groups without members, and what they committed")
    deleting.set_defaults(action=ImportedAction(CHANGING, "delete"))
    deleting.add_argument("groups", metavar=GROUP, nargs="+")
    forgetting = actions.add_parser("delete-offsets", help="remove what a group committed for some topics")
    forgetting.set_defaults(action=ImportedAction(CHANGING, "delete_offsets_of"))
    forgetting.add_argument("group", metavar=GROUP)
    _add_topic(forgetting, required=True)
    for action in (deleting, forgetting):
        add_yes_option(action)
    for action in (listing, describing, lagging, changing, deleting, forgetting):
        add_output_option(action)
        add_connection_options(action)
    return parser.parse_args(arguments)


def _add_changes(resetting: Parser) -> Parser:
    resetting.set_defaults(action=ImportedAction(CHANGING, "reset"))
    resetting.add_argument("group", metavar=GROUP)
    _add_topic(resetting, required=False)
    resetting.add_argument("--all-topics", action="store_true", help="all that the group has committed something for")
    resetting.add_argument("--to", metavar="WHERE", required=True, help="earliest, latest, 47, +10, @-1h and others")
    resetting.add_argument("--dry-run", action="store_true", help="only show what would be")
    add_yes_option(resetting)
    return resetting


def _add_topic(action: Parser, *, required: bool) -> None:
    action.add_argument(
        "--topic",
        metavar=TOPIC_PARTITIONS,
        action="append",
        default=[],
        required=required,
        help="of all or of these partitions; may be repeated",
    )
