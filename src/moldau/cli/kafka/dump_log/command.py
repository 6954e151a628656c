"""`moldau dump-log`: Apache Kafka's DumpLogSegments, for the files of our brokers and of Apache Kafka's."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from moldau.cli.failures import FAILED, OK, UsageError
from moldau.cli.kafka.dump_log.decoding import STRING_DECODER, Parser, decoder_named, parser_of
from moldau.cli.kafka.dump_log.findings import Damaged, Findings
from moldau.cli.kafka.dump_log.indexes import dump_offset_index, dump_time_index, dump_transaction_index
from moldau.cli.kafka.dump_log.log import BYTES_MAX_DEFAULT, LogOptions, dump_log
from moldau.cli.kafka.dump_log.producers import dump_producers
from moldau.cli.parsing import Parser as ArgumentParser
from moldau.cli.parsing import whole

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
    log_options = _log_options(options)
    findings = Findings()
    for path in options.files.split(","):
        print(f"Dumping {path}")
        try:
            _dump(path, options, log_options, findings)
        except Damaged as wrong:
            findings.add_damage(str(wrong))
        except OSError as wrong:
            findings.add_damage(f"cannot read {wrong.filename or path}: {wrong.strerror}")
    sys.stdout.flush()
    findings.print_all()
    return OK if findings.is_sound else FAILED


def _dump(path: str, options: Namespace, log_options: LogOptions, findings: Findings) -> None:
    match os.path.splitext(os.path.basename(path))[1]:
        case ".log" | ".checkpoint":
            dump_log(path, log_options, findings)
        case ".index":
            dump_offset_index(
                path,
                findings,
                is_sanity_only=options.index_sanity_check,
                is_verify_only=options.verify_index_only,
                message_bytes_max=options.max_message_size,
            )
        case ".timeindex":
            dump_time_index(
                path,
                findings,
                is_sanity_only=options.index_sanity_check,
                is_verify_only=options.verify_index_only,
            )
        case ".txnindex":
            dump_transaction_index(path)
        case ".snapshot":
            dump_producers(path)
        case _:
            print(f"Ignoring unknown file {path}", file=sys.stderr)


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


def _log_options(options: Namespace) -> LogOptions:
    parser, is_special = _parser(options)
    prints = bool(options.print_data_log or is_special or options.key_decoder_class or options.value_decoder_class)
    return LogOptions(
        is_deep=options.deep_iteration or prints,
        prints_records=prints,
        skips_metadata=options.skip_record_metadata,
        bytes_max=options.max_bytes,
        parser=parser,
    )


def _parser(options: Namespace) -> tuple[Parser, bool]:
    if options.remote_log_metadata_decoder:
        raise UsageError(
            "--remote-log-metadata-decoder is not supported: it is for Apache Kafka's tiered storage; for bytes, add"
            " --value-decoder-class org.apache.kafka.tools.api.DefaultDecoder instead"
        )
    found = _of_internal_topic(options)
    if found is not None:
        return found, True
    key = decoder_named(options.key_decoder_class or STRING_DECODER, option="--key-decoder-class")
    value = decoder_named(options.value_decoder_class or STRING_DECODER, option="--value-decoder-class")
    return parser_of(key, value), False


def _of_internal_topic(options: Namespace) -> Parser | None:
    wanted = (
        options.offsets_decoder,
        options.transaction_log_decoder,
        options.cluster_metadata_decoder,
        options.share_group_state_decoder,
    )
    if not any(wanted):
        return None
    from moldau.cli.kafka.dump_log import internal_topics as topics

    if options.offsets_decoder:
        return topics.CoordinatorParser(topics.offsets_schemas())
    if options.transaction_log_decoder:
        return topics.CoordinatorParser(topics.transaction_schemas())
    if options.cluster_metadata_decoder:
        return topics.cluster_metadata
    return topics.CoordinatorParser(topics.share_state_schemas())


_TOPICS = {
    "offsets": "__consumer_offsets",
    "transaction-log": "__transaction_state",
    "cluster-metadata": "Apache Kafka's __cluster_metadata",
    "remote-log-metadata": "Apache Kafka's __remote_log_metadata (refused)",
    "share-group-state": "Apache Kafka's __share_group_state",
}
