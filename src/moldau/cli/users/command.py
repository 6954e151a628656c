"""The command line of `moldau users`."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.completion.kinds import USER
from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.questions import add_yes_option
from moldau.cli.users.passwords import add_password_options

WORK = "moldau.cli.users.acting"
EXAMPLES = """\
A password comes from MOLDAU_USER_PASSWORD, --password-file or a question, and never from the command line.

examples:
  moldau users list
  moldau users add alice                                  asks for the password
  moldau users add alice --password-file alice.secret     the first line of a file
  moldau users add app --mechanism SCRAM-SHA-256 --generate
  moldau users password alice
  moldau users delete alice
"""
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM = MECHANISMS[1]
DEFAULT_ITERATIONS = 4_096


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser(
        "users", "List, add and delete users who log in with SCRAM, and change their passwords.", EXAMPLES
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the users there are")
    listing.set_defaults(action=ImportedAction(WORK, "list_users"))
    listing.add_argument("users", metavar=USER, nargs="*", help="default: all")
    adding = actions.add_parser("add", help="a new user, or another mechanism of one")
    adding.set_defaults(action=ImportedAction(WORK, "add_user"))
    adding.add_argument("user", metavar="USER", type=user_name)
    adding.add_argument("--mechanism", choices=MECHANISMS, default=DEFAULT_MECHANISM, help="default: %(default)s")
    changing = actions.add_parser("password", help="another password")
    changing.set_defaults(action=ImportedAction(WORK, "change_password"))
    changing.add_argument("user", metavar=USER, type=user_name)
    changing.add_argument("--mechanism", choices=MECHANISMS, help="default: all that the user has")
    for action in (adding, changing):
        action.add_argument("--iterations", type=iterations, help=f"of the hash (default: {DEFAULT_ITERATIONS})")
        add_password_options(action)
    deleting = actions.add_parser("delete", help="remove a user, or one mechanism of one")
    deleting.set_defaults(action=ImportedAction(WORK, "delete_user"))
    deleting.add_argument("user", metavar=USER, type=user_name)
    deleting.add_argument("--mechanism", choices=MECHANISMS, help="default: all that the user has")
    add_yes_option(deleting)
    for action in (listing, adding, changing, deleting):
        add_output_option(action)
        add_connection_options(action)
    return parser.parse_args(arguments)


def user_name(text: str) -> str:
    if not text or text.startswith("User:"):
        raise ArgumentTypeError(f"{text!r} is no user; expected a name such as alice, without User:")
    return text


def iterations(text: str) -> int:
    from moldau.security.sasl.scram.credential import ITERATIONS_MAX, ITERATIONS_MIN

    if not text.isdecimal() or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise ArgumentTypeError(f"{text!r}: expected {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)
