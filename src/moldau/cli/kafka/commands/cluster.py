"""The command line of `moldau cluster`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.completion.kinds import BROKER
from moldau.cli.kafka.bootstrap import add_bootstrap_options
from moldau.cli.parsing import whole

WORK = "moldau.cli.kafka.cluster"
EXAMPLES = """\
examples:
  moldau cluster cluster-id
  moldau cluster list-endpoints --include-fenced-brokers
  moldau cluster unregister --id 3
"""


def main(arguments: list[str]) -> int:
    return run_action(parse(arguments))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("cluster", "The Kafka cluster tool.", EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    cluster_id = actions.add_parser("cluster-id", help="the ID of the cluster")
    cluster_id.set_defaults(action=ImportedAction(WORK, "print_cluster_id"))
    unregister = actions.add_parser("unregister", help="forget a broker")
    unregister.set_defaults(action=ImportedAction(WORK, "unregister_broker"))
    unregister.add_argument(
        "-i", "--id", metavar=BROKER, type=whole(0, 2**31 - 1, "broker id"), required=True, help="which broker"
    )
    endpoints = actions.add_parser("list-endpoints", help="where its brokers are")
    endpoints.set_defaults(action=ImportedAction(WORK, "list_endpoints"))
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="those that do not run, too")
    for action in (cluster_id, unregister, endpoints):
        add_bootstrap_options(action, files=("-c", "--command-config", "--config"), controllers=("-C",))
    return parser.parse_args(arguments)
