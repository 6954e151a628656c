"""The command line of `moldau consumer-perf`."""

from __future__ import annotations

import random
import sys
from argparse import Namespace

from moldau.cli.completion.kinds import GROUP, TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.java_clients import warn_of_old_option
from moldau.cli.kafka.performance.dates import DEFAULT_PATTERN, pattern
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
examples:
  moldau consumer-perf --topic orders --num-records 1000000
  moldau consumer-perf --include 'orders-.*' --num-records 1000000 --show-detailed-stats --reporting-interval 1000
  moldau consumer-perf --bootstrap-server kafka-1:9092 --topic orders --messages 100000 --group perf --timeout 30000
"""
FETCH_BYTES = 1024 * 1024
SOCKET_BYTES = 2 * 1024 * 1024
TIMEOUT_MS = 10_000
REPORT_MS = 5_000
NUMBER_MAX = 2**63 - 1


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.performance.consuming import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau consumer-perf", description="Read records as fast as it goes, and say how fast.", epilog=EXAMPLES
    )
    count, size = whole(1, NUMBER_MAX, "number"), whole(1, 1_000_000_000, "size")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--topic", metavar=TOPIC, help="the topic to read")
    what.add_argument("--include", metavar="PATTERN", help="every topic whose name fits this regular expression")
    parser.add_argument(
        "--num-records",
        "--messages",
        dest="num_records",
        type=count,
        required=True,
        metavar="N",
        help="how many to read",
    )
    parser.add_argument(
        "--group", metavar=GROUP, default=f"perf-consumer-{random.randrange(100_000)}", help="of consumers"
    )
    parser.add_argument("--fetch-size", type=size, default=FETCH_BYTES, metavar="BYTES", help="of a partition at once")
    parser.add_argument("--from-latest", action="store_true", help="where the group has no offsets, only what comes")
    parser.add_argument("--socket-buffer-size", type=size, default=SOCKET_BYTES, metavar="BYTES")
    parser.add_argument("--print-metrics", action="store_true", help="librdkafka's numbers of the member at the end")
    parser.add_argument("--show-detailed-stats", action="store_true", help="a line each --reporting-interval")
    parser.add_argument("--reporting-interval", type=count, default=REPORT_MS, metavar="MS")
    parser.add_argument(
        "--timeout", dest="record_timeout_ms", type=whole(0, NUMBER_MAX, "number"), default=TIMEOUT_MS, metavar="MS",
        help=f"longest time without a record ({TIMEOUT_MS})",
    )  # fmt: skip
    parser.add_argument("--date-format", type=pattern, default=DEFAULT_PATTERN, help="of Java's SimpleDateFormat")
    parser.add_argument("--hide-header", action="store_true")
    add_kafka_connection_options(
        parser, files=("--command-config", "--consumer.config"), properties=("--command-property",)
    )
    options = parser.parse_args(arguments)
    if "--messages" in arguments:
        print("Warning: --messages is deprecated. Use --num-records instead.", file=sys.stderr)
    if "--consumer.config" in arguments:
        warn_of_old_option("--consumer.config", "--command-config")
    return options
