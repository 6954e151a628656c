"""The command line of `moldau transactions`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import ImportedAction, action_parser, run_action
from moldau.cli.completion.kinds import BROKER, PARTITION, TOPIC, TRANSACTIONAL_ID
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.bootstrap import behind_action
from moldau.cli.parsing import Parser, whole

WORK = "moldau.cli.kafka.transactions.acting"
EXAMPLES = """\
examples:
  moldau transactions list
  moldau transactions list --duration-filter 60000
  moldau transactions describe --transactional-id billing-7
  moldau transactions find-hanging --topic orders
  moldau transactions describe-producers --topic orders --partition 0
  moldau transactions abort --topic orders --partition 0 --start-offset 4711
  moldau transactions forceTerminateTransaction --transactionalId billing-7
"""
INT, LONG, SHORT = (2**bits - 1 for bits in (31, 63, 15))
MAX_TIMEOUT_MIN = 15


def main(arguments: list[str]) -> int:
    return run_action(parse(behind_action(arguments)))


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser(
        "transactions",
        "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and"
        " recover from hanging transactions.",
        EXAMPLES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="transactional ids and their states")
    listing.set_defaults(action=ImportedAction(WORK, "list_transactions"))
    listing.add_argument(
        "--duration-filter",
        metavar="MS",
        type=whole(-LONG, LONG, "number of milliseconds"),
        default=-1,
        help="only those that run longer; less than 0 for all",
    )
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match")
    describing = actions.add_parser("describe", help="the state of one transactional id")
    describing.set_defaults(action=ImportedAction(WORK, "describe"))
    describing.add_argument("--transactional-id", metavar=TRANSACTIONAL_ID, required=True)
    remembered = actions.add_parser("describe-producers", help="the producers that a partition remembers")
    remembered.set_defaults(action=ImportedAction(WORK, "describe_producers"))
    _add_place(remembered, required=True)
    _add_broker(remembered, "as this replica remembers them, instead of the leader")
    aborting = actions.add_parser("abort", help="end a transaction that hangs")
    aborting.set_defaults(action=ImportedAction(WORK, "abort"))
    _add_place(aborting, required=True)
    _add_spec(aborting)
    hanging = actions.add_parser("find-hanging", help="transactions that nobody will end")
    hanging.set_defaults(action=ImportedAction("moldau.cli.kafka.transactions.hanging", "find_hanging"))
    _add_place(hanging, required=False)
    _add_broker(hanging, "only partitions that this broker has")
    hanging.add_argument(
        "--max-transaction-timeout",
        metavar="MINUTES",
        type=whole(-INT, INT, "number of minutes"),
        default=MAX_TIMEOUT_MIN,
        help=f"only those that are older (default: {MAX_TIMEOUT_MIN})",
    )
    forcing = actions.add_parser(
        "forceTerminateTransaction", aliases=["force-terminate"], help="end what a transactional id is doing"
    )
    forcing.set_defaults(action=ImportedAction(WORK, "force_terminate"))
    forcing.add_argument(
        "--transactionalId", "--transactional-id", dest="transactional_id", metavar=TRANSACTIONAL_ID, required=True
    )
    for action in (listing, describing, remembered, aborting, hanging, forcing):
        add_kafka_connection_options(action)
    return parser.parse_args(arguments)


def _add_place(parser: Parser, *, required: bool) -> None:
    parser.add_argument("--topic", metavar=TOPIC, required=required)
    parser.add_argument("--partition", metavar=PARTITION, type=whole(0, INT, "partition"), required=required)


def _add_broker(parser: Parser, told: str) -> None:
    parser.add_argument("--broker-id", metavar=BROKER, type=whole(0, INT, "broker id"), help=told)


def _add_spec(parser: Parser) -> None:
    newer = parser.add_argument_group("brokers on versions 3.0 and above")
    newer.add_argument("--start-offset", metavar="OFFSET", type=whole(0, LONG, "offset"), help="where it begins")
    older = parser.add_argument_group("brokers on versions older than 3.0; all of these")
    older.add_argument("--producer-id", metavar="ID", type=whole(-LONG, LONG, "producer id"))
    older.add_argument("--producer-epoch", metavar="EPOCH", type=whole(-SHORT, SHORT, "epoch"))
    older.add_argument("--coordinator-epoch", metavar="EPOCH", type=whole(-INT, INT, "epoch"))
