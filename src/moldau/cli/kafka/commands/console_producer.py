"""The command line of `moldau console-producer`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.console.properties import warn_of_old_names
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
examples:
  moldau console-producer --topic orders < lines.txt
  moldau console-producer --topic orders --reader-property parse.key=true --reader-property key.separator=:
  moldau console-producer --topic orders --reader-property parse.headers=true      h1:v1,h2:v2<TAB>value
"""
LINE_READERS = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
LONG = whole(0, 2**63 - 1, "number")
OLD_NAMES = {
    "--producer-property": "--command-property",
    "--producer.config": "--command-config",
    "--property": "--reader-property",
    "--max-partition-memory-bytes": "--batch-size",
}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    warn_of_old_names(arguments, OLD_NAMES)
    from moldau.cli.kafka.console.producer import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau console-producer",
        description="Send the lines of standard input to a topic, with the options of kafka-console-producer.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    parser.add_argument("--topic", metavar=TOPIC, required=True)
    parser.add_argument("--sync", action="store_true", help="wait for each record")
    parser.add_argument(
        "--compression-codec", nargs="?", const="gzip", default=None, metavar="CODEC",
        choices=("none", "gzip", "snappy", "lz4", "zstd"), help="none, gzip (without a value), snappy, lz4, zstd",
    )  # fmt: skip
    parser.add_argument("--batch-size", type=LONG, metavar="BYTES")
    parser.add_argument("--max-partition-memory-bytes", type=LONG, metavar="BYTES", help="the old name of --batch-size")
    parser.add_argument("--message-send-max-retries", type=LONG, metavar="N", default=3)
    parser.add_argument("--retry-backoff-ms", type=LONG, metavar="MS")
    parser.add_argument("--request-required-acks", metavar="ACKS", default="-1", choices=("-1", "all", "1", "0"))
    parser.add_argument("--request-timeout-ms", type=LONG, metavar="MS")
    parser.add_argument("--metadata-expiry-ms", type=LONG, metavar="MS")
    parser.add_argument("--max-block-ms", type=LONG, metavar="MS", help="taken, and without effect")
    parser.add_argument("--max-memory-bytes", type=LONG, metavar="BYTES", help="what may wait to be sent")
    parser.add_argument("--socket-buffer-size", type=LONG, metavar="BYTES")
    parser.add_argument(
        "--line-reader", metavar="CLASS", default=LINE_READERS[0], help="Apache Kafka's, or MODULE:NAME"
    )
    parser.add_argument(
        "--reader-property", "--property", dest="reader_property", metavar="KEY=VALUE", action="append", default=[],
        help="parse.key, parse.headers, ignore.error, key.separator, headers.delimiter, headers.separator,"
        " headers.key.separator, null.marker",
    )  # fmt: skip
    parser.add_argument("--reader-config", metavar="FILE", help="such properties in a file")
    add_kafka_connection_options(
        parser,
        files=("--command-config", "--producer.config"),
        properties=("--command-property", "--producer-property"),
    )
    # The same word says for our own tools how long to wait for an answer.
    parser.add_argument("--timeout", dest="timeout_linger", type=LONG, metavar="MS", help="how long records may gather")
    return parser.parse_args(arguments)
