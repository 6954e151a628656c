"""The command line of `moldau producer-perf`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError, Namespace

from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.kafka.java_clients import warn_of_old_option
from moldau.cli.parsing import Parser, unescaped, whole

EXAMPLES = """\
Settings of Java's producer and of librdkafka are taken alike: acks, linger.ms, batch.size, compression.type, ...

examples:
  moldau producer-perf --topic orders --num-records 1000000 --record-size 100 --throughput -1
  moldau producer-perf --topic orders --num-records 50000 --payload-file lines.txt --throughput 5000
  moldau producer-perf --topic orders --num-records 1000000 --record-size 1000 --throughput -1 \\
    --bootstrap-server kafka-1:9092 --command-property acks=1 compression.type=lz4
  moldau producer-perf --topic orders --num-records 100000 --record-size 100 --throughput -1 --transactional-id perf
"""
TRANSACTION_MS = 3_000
REPORT_MS = 5_000
NUMBER_MAX = 2**63 - 1


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.performance.producing import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau producer-perf", description="Send records as fast as it goes, and say how fast.", epilog=EXAMPLES
    )
    count = whole(1, NUMBER_MAX, "number")
    parser.add_argument("--topic", metavar=TOPIC, required=True)
    parser.add_argument("--num-records", type=count, required=True, metavar="N", help="how many to send")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record-size", type=whole(1, 2**31 - 1, "size"), metavar="BYTES", help="random letters")
    what.add_argument("--payload-file", metavar="FILE", help="one of its lines, by chance, for each record")
    what.add_argument("--payload-monotonic", action="store_true", help="0, 1, 2, ...")
    parser.add_argument(
        "--payload-delimiter", metavar="TEXT", type=unescaped, default="\n", help=r"between payloads of a file (\n)"
    )
    parser.add_argument(
        "--throughput", type=_rate, required=True, metavar="RATE", help="records a second; -1: no limit"
    )
    parser.add_argument("--print-metrics", action="store_true", help="librdkafka's numbers at the end")
    parser.add_argument("--transactional-id", metavar="ID", help="send in transactions")
    parser.add_argument(
        "--transaction-duration-ms", type=count, metavar="MS", help=f"commit after so long ({TRANSACTION_MS})"
    )
    parser.add_argument(
        "--warmup-records", type=whole(0, NUMBER_MAX, "number"), default=0, metavar="N", help="in no steady state yet"
    )
    parser.add_argument("--reporting-interval", type=count, default=REPORT_MS, metavar="MS", help="between two lines")
    add_kafka_connection_options(parser, files=("--command-config", "--producer.config"))
    parser.add_argument(
        "--command-property",
        "--producer-props",
        dest="given_properties",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=SUPPRESS,
        help="client properties, several at once",
    )
    options = parser.parse_args(arguments)
    options.properties = [*options.properties, *getattr(options, "given_properties", [])]
    if options.warmup_records >= options.num_records:
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in the test,"
            " --num-records."
        )
    _warn(arguments)
    return options


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not (rate < 0 or rate > 0):
        raise ArgumentTypeError(f"{text!r} is no rate; expected records a second, or -1 for no limit")
    return rate


def _warn(arguments: list[str]) -> None:
    for old, new in (("--producer-props", "--command-property"), ("--producer.config", "--command-config")):
        if old in arguments:
            warn_of_old_option(old, new)
