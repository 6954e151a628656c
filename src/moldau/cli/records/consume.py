"""`moldau consume`: print the records of a topic, by assigned partitions and without a group."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from moldau.cli.connection import add_connection_options
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.librdkafka import Outage, check_partition, client_config, open_client, topic_failure, topic_metadata
from moldau.cli.parsing import Parser
from moldau.cli.records import offsets
from moldau.cli.records import text as record_text
from moldau.cli.records.json import record_as_json
from moldau.core.clock import SystemClock

EXAMPLES = """\
examples:
  moldau consume orders                              new records, until Ctrl-C
  moldau consume orders --from-beginning -e          everything there is
  moldau consume orders --offset -10 --show timestamp,key,value
  moldau consume orders --offset @-1h -o json        the last hour, one JSON object a line
  moldau consume orders -e --from-beginning -o json | moldau produce copy -i json
"""

POLL_S = 0.25  # how long Ctrl-C may have to wait
BATCH_RECORDS_MAX = 1_000

Format = Callable[[Any], bytes]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    outage = Outage("consume", options)
    show, start = chosen_format(options), chosen_start(options)
    consumer = open_client(Consumer, client_config(options, **settings(outage)))
    try:
        read_topic(consumer, options, show=show, start=start, outage=outage)
    except KeyboardInterrupt:
        pass  # the usual way to end it
    finally:
        consumer.close()
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau consume",
        description="Print the records of a topic, of all its partitions, without joining a group.",
        epilog=f"{EXAMPLES}\n{offsets.HELP}\n{record_text.HELP}",
    )
    parser.add_argument("topic", metavar="TOPIC")
    where = parser.add_argument_group("what to read")
    where.add_argument(
        "-p", "--partition", metavar="N", type=int, action="append", help="only this one; may be repeated"
    )
    begin = where.add_mutually_exclusive_group()
    begin.add_argument("--from-beginning", action="store_true", help="the same as --offset start")
    begin.add_argument(
        "--offset", metavar="OFFSET", default="end", help="where to begin; see below (default: %(default)s)"
    )
    where.add_argument("-n", "--max-messages", metavar="N", type=count, help="leave after this many records")
    where.add_argument("-e", "--exit-at-end", action="store_true", help="leave where the topic ended when we began")
    where.add_argument("--isolation-level", choices=("read_committed", "read_uncommitted"), default="read_uncommitted")
    how = parser.add_argument_group("how to print it")
    shape = how.add_mutually_exclusive_group()
    shape.add_argument(
        "-o", "--output", choices=("text", "json", "jsonl"), default="text", help="json is one object a line"
    )
    shape.add_argument("-f", "--format", metavar="FORMAT", help="such as '%%p %%o %%k: %%v\\n'; see below")
    shape.add_argument("--show", metavar="FIELD,...", help=f"of {', '.join(record_text.FIELD_OF)}; tabs between them")
    how.add_argument(
        "--null-marker", default="null", help="stands for a null key or value in text (default: %(default)s)"
    )
    add_connection_options(parser)
    return parser.parse_args(arguments)


def count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)


def settings(outage: Outage) -> dict[str, object]:
    return {
        "group.id": "moldau-consume",  # the library wants a name; assigned partitions never join or commit
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "fetch.wait.max.ms": 100,
        "error_cb": outage.on_error,
    }


def chosen_format(options: Namespace) -> Format:
    if options.output != "text":
        return lambda message: record_as_json(message).encode() + b"\n"
    try:
        text = options.format or record_text.format_of((options.show or "value").split(","))
        return record_text.compile_format(text, null_marker=options.null_marker.encode())
    except ValueError as wrong:
        raise UsageError(str(wrong)) from None


def chosen_start(options: Namespace) -> offsets.Start:
    try:
        return offsets.parse_start("start" if options.from_beginning else options.offset, now_ms=SystemClock().now_ms())
    except ValueError as wrong:
        raise UsageError(f"--offset: {wrong}") from None


def read_topic(consumer: Consumer, options: Namespace, *, show: Format, start: offsets.Start, outage: Outage) -> None:
    partitions = chosen_partitions(options, sorted(topic_metadata(consumer, options.topic, options).partitions))
    ends: dict[int, int] = {}
    assigned = []
    for partition in partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(options.topic, partition), timeout=options.timeout)
        assigned.append(begin_at(consumer, partition, options, start=start, low=low, high=high))
        if options.exit_at_end and assigned[-1].offset < high:
            ends[partition] = high
    if options.exit_at_end and not ends:
        return
    consumer.assign(assigned)
    outage.on_answer()
    print_records(consumer, options, show=show, ends=ends, outage=outage)


def chosen_partitions(options: Namespace, existing: list[int]) -> list[int]:
    wanted: list[int] = options.partition or existing
    for partition in wanted:
        check_partition(options.topic, partition, existing)
    return wanted


def begin_at(
    consumer: Consumer, partition: int, options: Namespace, *, start: offsets.Start, low: int, high: int
) -> TopicPartition:
    def offset_at(timestamp_ms: int) -> int | None:
        asked = TopicPartition(options.topic, partition, timestamp_ms)
        offset: int = consumer.offsets_for_times([asked], timeout=options.timeout)[0].offset
        return offset if offset >= 0 else None

    try:
        offset = offsets.resolve(start, low=low, high=high, offset_at=offset_at)
    except offsets.OutOfRange as wrong:
        raise CommandFailed(f"{options.topic}-{partition}: {wrong}") from None
    return TopicPartition(options.topic, partition, offset)


def print_records(
    consumer: Consumer, options: Namespace, *, show: Format, ends: dict[int, int], outage: Outage
) -> None:
    """Until the wanted number is printed, or every partition of `ends` has come to its end; else for ever."""
    out = sys.stdout.buffer
    left = options.max_messages
    while left is None or left > 0:
        messages = next_messages(consumer, limit=BATCH_RECORDS_MAX if left is None else min(left, BATCH_RECORDS_MAX))
        for message in messages:
            if is_record(message, options.topic):
                out.write(show(message))
                left = None if left is None else left - 1
            pass_end(message, ends)
        out.flush()
        if options.exit_at_end and not ends:
            return
        if messages:
            outage.on_answer()
        elif outage.is_lost and options.exit_at_end:
            raise CommandFailed(f"the end of {options.topic} can't be reached: every broker is gone")


def next_messages(consumer: Consumer, *, limit: int) -> list[Any]:
    """Waits for one and takes those that are there with it: waiting for many would hold the first one back."""
    first = consumer.poll(POLL_S)
    if first is None:
        return []
    return [first, *(consumer.consume(limit - 1, timeout=0) if limit > 1 else ())]


def is_record(message: Any, topic: str) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() != KafkaError._PARTITION_EOF:
        raise CommandFailed(topic_failure(topic, error))
    return False


def pass_end(message: Any, ends: dict[int, int]) -> None:
    """Markers of transactions are offsets without records, so the library's word on the end counts as well."""
    partition = message.partition()
    at_end = message.error() is not None or message.offset() + 1 >= ends.get(partition, message.offset() + 2)
    if at_end:
        ends.pop(partition, None)
