"""The command line of `moldau console-consumer`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import GROUP, PARTITION, TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.kafka.console.properties import warn_of_old_names
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
examples:
  moldau console-consumer --topic orders --from-beginning
  moldau console-consumer --topic orders --group billing --formatter-property print.key=true
  moldau console-consumer --topic __consumer_offsets --from-beginning \\
      --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter
  moldau console-consumer --topic orders --formatter my_formats:as_xml
"""
COUNT_MAX = 2**31 - 1
SHUTDOWN = "shutdown_complete"
OLD_NAMES = {
    "--consumer-property": "--command-property",
    "--consumer.config": "--command-config",
    "--property": "--formatter-property",
}
FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    warn_of_old_names(arguments, OLD_NAMES)
    from moldau.cli.kafka.console.consumer import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau console-consumer",
        description="Print the records of topics, with the options of kafka-console-consumer.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    parser.add_argument("--topic", metavar=TOPIC)
    parser.add_argument("--include", metavar="PATTERN", help="the topics whose whole name this matches")
    parser.add_argument("--partition", type=whole(0, COUNT_MAX, "partition"), metavar=PARTITION)
    parser.add_argument("--offset", help="earliest, latest or a number (default: latest); needs --partition")
    parser.add_argument("--from-beginning", action="store_true", help="unless the group has an offset")
    parser.add_argument("--max-messages", type=whole(-1, COUNT_MAX, "number of messages"), metavar="N")
    parser.add_argument("--timeout-ms", type=whole(-1, 2**63 - 1, "time"), metavar="MS", help="leave if nothing comes")
    parser.add_argument("--skip-message-on-error", action="store_true", help="instead of leaving")
    parser.add_argument("--group", metavar=GROUP, help="join it, and commit its offsets")
    parser.add_argument("--isolation-level", choices=("read_committed", "read_uncommitted"))
    parser.add_argument(
        "--formatter", metavar="CLASS", default=FORMATTER, help="a class of Apache Kafka, or MODULE:NAME"
    )
    parser.add_argument(
        "--formatter-property", "--property", dest="formatter_property", metavar="KEY=VALUE", action="append",
        default=[], help="print.timestamp|key|offset|epoch|partition|headers|value=true|false, key.separator,"
        " line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, headers.deserializer",
    )  # fmt: skip
    parser.add_argument("--formatter-config", metavar="FILE", help="such properties in a file")
    parser.add_argument("--key-deserializer", metavar="CLASS", help="a class of Apache Kafka, or MODULE:NAME")
    parser.add_argument("--value-deserializer", metavar="CLASS", help="a class of Apache Kafka, or MODULE:NAME")
    parser.add_argument("--enable-systest-events", action="store_true", help=f"say {SHUTDOWN} at the end")
    add_kafka_connection_options(
        parser,
        files=("--command-config", "--consumer.config"),
        properties=("--command-property", "--consumer-property"),
    )
    options = parser.parse_args(arguments)
    _check(options)
    return options


def _check(options: Namespace) -> None:
    if (options.topic is None) == (options.include is None):
        raise UsageError("Exactly one of the following arguments is required: --topic, --include")
    if options.partition is not None and options.topic is None:
        raise UsageError("The topic is required when partition is specified.")
    if options.offset is not None and options.from_beginning:
        raise UsageError("Options from-beginning and offset cannot be specified together.")
    if options.offset is not None and options.partition is None:
        raise UsageError("The partition is required when offset is specified.")
    if options.partition is not None and options.group is not None:
        raise UsageError("Options group and partition cannot be specified together.")
