"""The command line of `moldau metadata-quorum`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.kafka.bootstrap import add_bootstrap_options, behind_action

WORK = "moldau.cli.kafka.metadata_quorum"
EXAMPLES = """\
examples:
  moldau metadata-quorum describe --status
  moldau metadata-quorum describe --replication --human-readable
"""


def main(arguments: list[str]) -> int:
    return run_action(parse(behind_action(arguments)))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("metadata-quorum", "This tool describes kraft metadata quorum status.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describe = actions.add_parser("describe", help="who keeps the metadata")
    describe.set_defaults(action=ImportedAction(WORK, "describe_quorum"))
    describe.add_argument("--status", action="store_true", help="a summary")
    describe.add_argument("--replication", action="store_true", help="how far each is")
    describe.add_argument("--human-readable", action="store_true", help="times as milliseconds ago")
    adding = actions.add_parser("add-controller", help="not supported: brokers are controllers by their configuration")
    removing = actions.add_parser("remove-controller", help="not supported")
    for action in (adding, removing):
        action.set_defaults(action=ImportedAction(WORK, "refuse"))
        action.add_argument("--dry-run", action="store_true", help="only try")
    removing.add_argument("-i", "--controller-id", metavar="ID", help="which controller")
    removing.add_argument("-d", "--controller-directory-id", metavar="ID", help="which directory of it")
    for action in (describe, adding, removing):
        add_bootstrap_options(action)
    return parser.parse_args(arguments)
