"""The command line of `moldau dump-log`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.parsing import Parser as ArgumentParser
from moldau.cli.parsing import whole

STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"
BYTES_MAX_DEFAULT = 0x7FFFFFFF
MESSAGE_BYTES_MAX = 5 * 1024 * 1024
EXAMPLES = """\
Files of a running broker can be read. What is wrong with a file is said with the byte where it is, and the exit code
is 1 then. Decoders are Apache Kafka's (StringDecoder, IntegerDecoder, LongDecoder, DefaultDecoder, which shows bytes
in hexadecimal), or your own function of bytes as MODULE:FUNCTION.

examples:
  moldau dump-log --files moldau-data/orders-0/00000000000000000000.log
  moldau dump-log --print-data-log --files moldau-data/orders-0/00000000000000000000.log
  moldau dump-log --verify-index-only --files 00000000000000000000.index,00000000000000000000.timeindex
  moldau dump-log --offsets-decoder --files moldau-data/__consumer_offsets-7/00000000000000000000.log
  moldau dump-log --transaction-log-decoder --files moldau-data/__transaction_state-3/00000000000000000000.log
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.dump_log.dumping import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(
        prog="moldau dump-log",
        description="Print what is in the files of a log directory, and what is wrong with them.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--files", metavar="FILE,...", required=True, help=".log, .index, .timeindex, .txnindex, .snapshot, .checkpoint"
    )
    parser.add_argument("--print-data-log", action="store_true", help="keys and values, too")
    parser.add_argument("--deep-iteration", action="store_true", help="records, and not only batches")
    parser.add_argument("--skip-record-metadata", action="store_true", help="of records only keys and values")
    parser.add_argument("--verify-index-only", action="store_true", help="check indexes, and print no entries")
    parser.add_argument("--index-sanity-check", action="store_true", help="only the check of a broker that starts")
    size = whole(0, BYTES_MAX_DEFAULT, "number of bytes")
    parser.add_argument(
        "--max-message-size", type=size, metavar="BYTES", default=MESSAGE_BYTES_MAX, help="of the largest batch"
    )
    parser.add_argument(
        "--max-bytes", type=size, metavar="BYTES", default=BYTES_MAX_DEFAULT, help="read no more than that of a log"
    )
    for name in ("key", "value"):
        parser.add_argument(
            f"--{name}-decoder-class",
            metavar="CLASS",
            nargs="?",
            const=STRING_DECODER,
            help=f"what makes text of a {name}",
        )
    for name in ("offsets", "transaction-log", "cluster-metadata", "remote-log-metadata", "share-group-state"):
        parser.add_argument(f"--{name}-decoder", action="store_true", help=f"read it as records of {_TOPICS[name]}")
    return parser.parse_args(arguments)


_TOPICS = {
    "offsets": "__consumer_offsets",
    "transaction-log": "__transaction_state",
    "cluster-metadata": "Apache Kafka's __cluster_metadata",
    "remote-log-metadata": "Apache Kafka's __remote_log_metadata",
    "share-group-state": "Apache Kafka's __share_group_state",
}
