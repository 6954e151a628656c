"""`moldau transactions`: what transactions there are, which of them hang, and an end for those."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.actions import action_parser, run_action
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import behind_action, open_patiently
from moldau.cli.kafka.tables import print_pretty_table
from moldau.cli.kafka.transactions import asking
from moldau.cli.kafka.transactions.hanging import find_hanging
from moldau.cli.parsing import Parser, whole
from moldau.client.cluster import Cluster, Refused
from moldau.core.clock import SystemClock
from moldau.core.ids import TopicPartition
from moldau.wire.messages import ListTransactionsRequest

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
LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED = (
    *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs"),
    *("CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"),
)
PRODUCERS = (
    *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
    "CurrentTransactionStartOffset",
)
NONE = "None"
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
    listing.set_defaults(action=list_transactions)
    listing.add_argument(
        "--duration-filter",
        metavar="MS",
        type=whole(-LONG, LONG, "number of milliseconds"),
        default=-1,
        help="only those that run longer; less than 0 for all",
    )
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match")
    describing = actions.add_parser("describe", help="the state of one transactional id")
    describing.set_defaults(action=describe)
    describing.add_argument("--transactional-id", metavar="ID", required=True)
    remembered = actions.add_parser("describe-producers", help="the producers that a partition remembers")
    remembered.set_defaults(action=describe_producers)
    _add_place(remembered, required=True)
    _add_broker(remembered, "as this replica remembers them, instead of the leader")
    aborting = actions.add_parser("abort", help="end a transaction that hangs")
    aborting.set_defaults(action=abort)
    _add_place(aborting, required=True)
    _add_spec(aborting)
    hanging = actions.add_parser("find-hanging", help="transactions that nobody will end")
    hanging.set_defaults(action=find_hanging)
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
    forcing.set_defaults(action=force_terminate)
    forcing.add_argument(
        "--transactionalId", "--transactional-id", dest="transactional_id", metavar="ID", required=True
    )
    for action in (listing, describing, remembered, aborting, hanging, forcing):
        add_kafka_connection_options(action)
    return parser.parse_args(arguments)


def _add_place(parser: Parser, *, required: bool) -> None:
    parser.add_argument("--topic", metavar="NAME", required=required)
    parser.add_argument("--partition", metavar="ID", type=whole(0, INT, "partition"), required=required)


def _add_broker(parser: Parser, told: str) -> None:
    parser.add_argument("--broker-id", metavar="ID", type=whole(0, INT, "broker id"), help=told)


def _add_spec(parser: Parser) -> None:
    newer = parser.add_argument_group("brokers on versions 3.0 and above")
    newer.add_argument("--start-offset", metavar="OFFSET", type=whole(0, LONG, "offset"), help="where it begins")
    older = parser.add_argument_group("brokers on versions older than 3.0; all of these")
    older.add_argument("--producer-id", metavar="ID", type=whole(-LONG, LONG, "producer id"))
    older.add_argument("--producer-epoch", metavar="EPOCH", type=whole(-SHORT, SHORT, "epoch"))
    older.add_argument("--coordinator-epoch", metavar="EPOCH", type=whole(-INT, INT, "epoch"))


def list_transactions(options: Namespace) -> int:
    request = ListTransactionsRequest(
        duration_filter=options.duration_filter, transactional_id_pattern=options.transactional_id_pattern
    )
    with open_patiently(options) as client:
        found = asking.listed(client, request)
    rows = [
        [each.transactional_id, str(broker_id), str(each.producer_id), each.transaction_state]
        for broker_id, each in found
    ]
    print_pretty_table(LISTED, rows)
    return OK


def describe(options: Namespace) -> int:
    name = options.transactional_id
    with open_patiently(options) as client:
        try:
            coordinator, state = asking.described(client, name)
        except Refused as wrong:
            raise asking.failed(
                f"Failed to describe transaction state of transactional-id `{name}`", str(wrong)
            ) from None
    start_ms = state.transaction_start_time_ms
    duration = NONE if start_ms < 0 else str(SystemClock().now_ms() - start_ms)
    places = ",".join(str(TopicPartition(topic.topic, each)) for topic in state.topics for each in topic.partitions)
    row = [
        *(str(coordinator), name, str(state.producer_id), str(state.producer_epoch), state.transaction_state),
        *(str(state.transaction_timeout_ms), NONE if start_ms < 0 else str(start_ms), duration, places),
    ]
    print_pretty_table(DESCRIBED, [row])
    return OK


def describe_producers(options: Namespace) -> int:
    place = TopicPartition(options.topic, options.partition)
    with open_patiently(options) as client:
        try:
            found = asking.producers(client, [place], broker_id=options.broker_id)[place]
        except Refused as wrong:
            where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
            raise asking.failed(f"Failed to describe producers for partition {place} on {where}", str(wrong)) from None
    rows = [
        [
            *(str(each.producer_id), str(each.producer_epoch), str(each.coordinator_epoch), str(each.last_sequence)),
            *(
                str(each.last_timestamp),
                NONE if each.current_txn_start_offset < 0 else str(each.current_txn_start_offset),
            ),
        ]
        for each in found
    ]
    print_pretty_table(PRODUCERS, rows)
    return OK


def abort(options: Namespace) -> int:
    place = TopicPartition(options.topic, options.partition)
    if options.start_offset is None:
        spec = _given_spec(options)
    with open_patiently(options) as client:
        if options.start_offset is not None:
            spec = _found_spec(client, place, options.start_offset)
        try:
            asking.abort(client, place, *spec)
        except Refused as wrong:
            raise asking.failed(f"Failed to abort transaction {asking.abort_words(place, *spec)}", str(wrong)) from None
    return OK


def _given_spec(options: Namespace) -> tuple[int, int, int]:
    """A producer whose coordinator never wrote a marker has an epoch of -1 for it, and 0 is not above any."""
    if options.producer_id is None:
        raise UsageError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or"
            " with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if options.producer_epoch is None:
        raise UsageError("Missing required argument --producer-epoch")
    if options.coordinator_epoch is None:
        raise UsageError("Missing required argument --coordinator-epoch")
    return options.producer_id, options.producer_epoch, max(options.coordinator_epoch, 0)


def _found_spec(client: Cluster, place: TopicPartition, start_offset: int) -> tuple[int, int, int]:
    try:
        found = asking.producers(client, [place], broker_id=None)[place]
    except Refused as wrong:
        raise asking.failed(f"Failed to validate producer state for partition {place}", str(wrong)) from None
    for each in found:
        if each.current_txn_start_offset == start_offset:
            return each.producer_id, each.producer_epoch, max(each.coordinator_epoch, 0)
    raise CommandFailed(f"Could not find any open transactions starting at offset {start_offset} on partition {place}")


def force_terminate(options: Namespace) -> int:
    name = options.transactional_id
    with open_patiently(options) as client:
        try:
            asking.terminate(client, name)
        except Refused as wrong:
            raise asking.failed(f"Failed to force terminate transactionalId `{name}`", str(wrong)) from None
    return OK
