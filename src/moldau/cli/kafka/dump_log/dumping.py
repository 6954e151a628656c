"""`moldau dump-log`: Apache Kafka's DumpLogSegments, for the files of our brokers and of Apache Kafka's."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from moldau.cli.failures import FAILED, OK
from moldau.cli.kafka.dump_log.command import STRING_DECODER
from moldau.cli.kafka.dump_log.decoding import Parser, decoder_named, parser_of
from moldau.cli.kafka.dump_log.findings import Damaged, Findings
from moldau.cli.kafka.dump_log.indexes import dump_offset_index, dump_time_index, dump_transaction_index
from moldau.cli.kafka.dump_log.log import LogOptions, dump_log
from moldau.cli.kafka.dump_log.producers import dump_producers
from moldau.cli.progress import as_bytes, progress


def run(options: Namespace) -> int:
    log_options = _log_options(options)
    findings = Findings()
    with log_options.progress:
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


def _log_bytes(paths: str) -> int:
    """Of the logs among them: indexes take no time."""
    logs = [path for path in paths.split(",") if path.endswith((".log", ".checkpoint")) and os.path.isfile(path)]
    return sum(map(os.path.getsize, logs))


def _log_options(options: Namespace) -> LogOptions:
    parser, is_special = _parser(options)
    prints = bool(options.print_data_log or is_special or options.key_decoder_class or options.value_decoder_class)
    return LogOptions(
        is_deep=options.deep_iteration or prints,
        prints_records=prints,
        skips_metadata=options.skip_record_metadata,
        bytes_max=options.max_bytes,
        parser=parser,
        progress=progress("dump-log", total=_log_bytes(options.files), show=as_bytes, prints=True),
    )


def _parser(options: Namespace) -> tuple[Parser, bool]:
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
        options.remote_log_metadata_decoder,
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
    if options.remote_log_metadata_decoder:
        from moldau.cli.kafka.dump_log.remote_log import remote_log_metadata

        return remote_log_metadata
    return topics.CoordinatorParser(topics.share_state_schemas())
