"""The command line of `moldau reassign-partitions`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from moldau.cli.completion.kinds import BROKER_LIST
from moldau.cli.failures import UsageError
from moldau.cli.kafka.bootstrap import add_bootstrap_options
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
The file of --topics-to-move-json-file: {"topics": [{"topic": "orders"}], "version": 1}
The file of --reassignment-json-file: {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2],
"log_dirs": ["any", "/data/2"]}], "version": 1}, where log_dirs may be left out.

examples:
  moldau reassign-partitions --generate --topics-to-move-json-file topics.json --broker-list 1,2,3
  moldau reassign-partitions --execute --reassignment-json-file plan.json --throttle 50000000
  moldau reassign-partitions --verify --reassignment-json-file plan.json
  moldau reassign-partitions --cancel --reassignment-json-file plan.json
  moldau reassign-partitions --list
"""
REPLICAS, TOPICS, BROKERS = "--reassignment-json-file", "--topics-to-move-json-file", "--broker-list"
CONTROLLER = "--bootstrap-controller"
# Which options each action needs, and which it takes besides.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "--generate": (TOPICS, BROKERS),
    "--execute": (REPLICAS,),
    "--verify": (REPLICAS,),
    "--cancel": (REPLICAS,),
    "--list": (),
}
TAKEN: Mapping[str, tuple[str, ...]] = {
    "--generate": ("--disable-rack-aware",),
    "--execute": (
        "--additional", "--throttle", "--replica-alter-log-dirs-throttle", "--timeout",
        "--disallow-replication-factor-change",
    ),
    "--verify": ("--preserve-throttles",),
    "--cancel": ("--preserve-throttles", "--timeout", CONTROLLER),
    "--list": (CONTROLLER,),
}  # fmt: skip
LIMITED = [*dict.fromkeys(each for options in (*NEEDED.values(), *TAKEN.values()) for each in options)]
LONG_MAX = 2**63 - 1
MOVES_TIMEOUT_MS = 10_000


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.reassignment.acting import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau reassign-partitions",
        description="This tool helps to move topic partitions between replicas.",
        epilog=EXAMPLES,
    )
    actions = parser.add_argument_group("actions, of which one is needed")
    actions.add_argument("--generate", action="store_true", help="propose an assignment; nothing is changed")
    actions.add_argument("--execute", action="store_true", help="begin the reassignment")
    actions.add_argument("--verify", action="store_true", help="how far it is; throttles are removed at its end")
    actions.add_argument("--cancel", action="store_true", help="end it, and go back to the replicas of before")
    actions.add_argument("--list", action="store_true", help="all reassignments that go on")
    parser.add_argument(TOPICS, metavar="FILE", help="the topics that --generate is to move")
    parser.add_argument(BROKERS, metavar=BROKER_LIST, help="the brokers that --generate may use, such as 1,2,3")
    parser.add_argument(REPLICAS, metavar="FILE", help="the replicas that are wanted, and perhaps log directories")
    rate = whole(-(2**63), LONG_MAX, "number of bytes per second")
    parser.add_argument("--throttle", metavar="RATE", type=rate, help="limit replication between brokers, in bytes/s")
    parser.add_argument(
        "--replica-alter-log-dirs-throttle", metavar="RATE", type=rate, help="limit moves inside a broker, in bytes/s"
    )
    parser.add_argument(
        "--timeout",
        dest="moves_timeout_ms",
        metavar="MS",
        type=whole(0, LONG_MAX, "number of milliseconds"),
        help=f"how long moves between log directories may take to begin (default: {MOVES_TIMEOUT_MS})",
    )
    parser.add_argument("--additional", action="store_true", help="although others go on; also to change a throttle")
    parser.add_argument("--preserve-throttles", action="store_true", help="leave all throttles as they are")
    parser.add_argument("--disable-rack-aware", action="store_true", help="propose without regard to racks")
    parser.add_argument(
        "--disallow-replication-factor-change", action="store_true", help="refuse another number of replicas"
    )
    add_bootstrap_options(parser)
    options = parser.parse_args(arguments)
    _check(options)
    return options


def _check(options: Namespace) -> None:
    chosen = [each for each in NEEDED if _given(options, each)]
    if len(chosen) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(NEEDED)}")
    action = options.chosen = chosen[0]
    missing = [each for each in NEEDED[action] if not _given(options, each)]
    if missing:
        raise UsageError(f'Missing required argument "[{missing[0].removeprefix("--")}]"')
    for each in LIMITED:
        if _given(options, each) and each not in (*NEEDED[action], *TAKEN[action]):
            raise UsageError(f'Option "[{each.removeprefix("--")}]" can\'t be used with action "[{action[2:]}]"')
    if options.moves_timeout_ms is None:
        options.moves_timeout_ms = MOVES_TIMEOUT_MS


def _given(options: Namespace, option: str) -> bool:
    name = "moves_timeout_ms" if option == "--timeout" else option.removeprefix("--").replace("-", "_")
    return getattr(options, name) not in (None, False)
