"""`moldau produce`: send lines of standard input, or of files, to a topic."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from moldau.cli.completion.kinds import PARTITION, TOPIC
from moldau.cli.connection import add_connection_options
from moldau.cli.ending import ended_by_signals
from moldau.cli.failures import OK, CommandFailed
from moldau.cli.librdkafka import Outage, client_config, kafka_error, open_client, reason, topic_metadata
from moldau.cli.parsing import Parser, unescaped, with_values
from moldau.cli.progress import as_bytes, progress
from moldau.cli.records.delivery import Delivery, delivery_failure
from moldau.cli.records.input import LineReader, bytes_of, check_files, records_of
from moldau.cli.records.json import OutgoingRecord
from moldau.cli.records.schemas.options import WRITING_HELP, add_writing_options, check_writing, registry_url
from moldau.cli.records.selection import check_partition

if TYPE_CHECKING:
    from moldau.cli.records.schemas.encoding import RecordEncoder

EXAMPLES = rf"""
examples:
  echo 'hello' | moldau produce orders
  echo 'customer-7:hello' | moldau produce orders --key-separator :
  moldau produce orders -K '\t' -F monday.tsv tuesday.tsv
  moldau produce images --whole -F cat.png -k cat
  moldau produce orders -H source=shell --compression zstd --transaction < records.txt
  echo 'customer-7' | moldau produce orders --tombstone
  moldau consume orders -e --from-beginning -o json | moldau produce copy -i json
  moldau produce orders --registry http://localhost:8081 --value-schema order.avsc < orders.jsonl
  moldau produce orders --registry http://localhost:8081 --value-schema latest < orders.jsonl

json input has one object a line, as `moldau consume -o json` prints them:
  {{"key": "a", "value": "b", "headers": [["name", "value"]], "timestamp": 1700000000000}}
  where {{"base64": "..."}} stands for bytes that are not text, and null for none.

{WRITING_HELP}
Ctrl-C ends it with exit code 130; what was read until then is sent, unless --transaction says otherwise.
"""

DELIVERY_S = 30  # how long a broker that went away may take to come back
QUEUE_PAUSE_S = 0.1
RECORD_BYTES_MAX = 1_000_000_000  # as much as librdkafka allows: the broker knows what is too much
TRANSACTION_MS = 900_000  # as long as brokers allow by default: a person may be typing


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    outage = Outage("produce", options)
    encoder = chosen_encoder(options)
    reader = LineReader(options, encoder)
    check_files(options.file)
    shown = progress("produce", total=bytes_of(options.file), show=as_bytes, prints=options.output != "none")
    producer = open_client(Producer, client_config(options, **settings(options, outage)))
    topic = topic_metadata(producer, options.topic, options, may_appear=True)
    if options.partition is not None:
        check_partition(options.topic, options.partition, topic.partitions)
    outage.on_answer()
    delivery = Delivery(options.topic, outage, prints=options.output != "none")

    def tell() -> None:
        producer.poll(0)
        delivery.flush()

    is_typed = not options.file and sys.stdin.isatty()
    outage.before = shown.clear
    with ended_by_signals(), shown, opened(encoder), sending(producer, options, delivery):
        # A person who types needs no line that says how much it was, in the middle of the next.
        for record in records_of(options, reader, tell, (lambda _: None) if is_typed else shown.add):
            send(producer, record, options, delivery, is_typed=is_typed)
            if delivery.failed:
                break
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau produce",
        description="Send the lines of standard input, or of files, to a topic, one record a line.",
        epilog=EXAMPLES,
    )
    parser.add_argument("topic", metavar=TOPIC)
    _add_input(parser)
    add_writing_options(parser)
    where = parser.add_argument_group("where and how")
    where.add_argument("-p", "--partition", metavar=PARTITION, type=int, help="default: by the key, as Java clients do")
    where.add_argument("--keep-partitions", action="store_true", help="the partition that a record names in json input")
    where.add_argument("-z", "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none")
    where.add_argument("--acks", choices=("0", "1", "all"), default="all")
    where.add_argument(
        "--transaction",
        action="store_true",
        help="all of the input in one transaction, which a failure or Ctrl-C aborts",
    )
    where.add_argument(
        "--transactional-id", metavar="ID", help="for --transaction, which it implies (default: one of its own)"
    )
    where.add_argument(
        "-o",
        "--output",
        choices=("none", "json", "jsonl"),
        default="none",
        help="json prints where each record is, as soon as it is there",
    )
    add_connection_options(parser)
    options = parser.parse_args(with_values(arguments, "--timestamp"))
    if options.transactional_id is not None:
        options.transaction = True
    if options.transaction and options.acks != "all":
        parser.error("--transaction needs --acks all")
    return options


def _add_input(parser: Parser) -> None:
    what = parser.add_argument_group("what to send")
    what.add_argument(
        "-F",
        "--file",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="instead of standard input, which is -",
    )
    split = what.add_mutually_exclusive_group()
    split.add_argument(
        "--delimiter",
        metavar="TEXT",
        type=unescaped,
        default="\n",
        help=r"what ends a record, such as '\0' (default: \n)",
    )
    split.add_argument("--whole", action="store_true", help="each file is one record, its line ends too")
    what.add_argument(
        "-i", "--input", choices=("text", "json", "jsonl"), default="text", help="json is one object a line"
    )
    key = what.add_mutually_exclusive_group()
    key.add_argument("-k", "--key", help="the key of every record")
    key.add_argument(
        "-K", "--key-separator", metavar="TEXT", type=unescaped, help=r"what stands between key and value, such as '\t'"
    )
    what.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], help="on every record; may be repeated"
    )
    what.add_argument("--timestamp", metavar="TIME", help="of every record: milliseconds, 2026-01-31T12:00:00 or -1h")
    what.add_argument("--null-marker", metavar="TEXT", help="a key or value of this text is null")
    what.add_argument("--tombstone", action="store_true", help="each line is a key whose value is null")


def chosen_encoder(options: Namespace) -> RecordEncoder | None:
    """None where nothing of the input can have a schema."""
    check_writing(options)
    has_schema = options.value_schema is not None or options.key_schema is not None
    if not has_schema and (options.input == "text" or registry_url(options) is None):
        return None
    from moldau.cli.records.schemas.encoding import RecordEncoder

    return RecordEncoder(options)


@contextmanager
def opened(encoder: RecordEncoder | None) -> Iterator[None]:
    """The registry is asked when the topic is there, for it may be told of a new schema."""
    if encoder is None:
        yield
        return
    with closing(encoder):
        encoder.open()
        yield


def settings(options: Namespace, outage: Outage) -> dict[str, object]:
    usual: dict[str, object] = {
        "acks": options.acks,
        "enable.idempotence": options.acks == "all",
        "compression.type": options.compression,
        "partitioner": "murmur2_random",  # keys go where Java's producer would put them
        "linger.ms": 5,
        "message.max.bytes": RECORD_BYTES_MAX,
        "message.timeout.ms": DELIVERY_S * 1_000,
        "error_cb": outage.on_error,
    }
    if options.transaction:
        import uuid

        usual["transactional.id"] = options.transactional_id or f"moldau-produce-{uuid.uuid4()}"
        usual["transaction.timeout.ms"] = TRANSACTION_MS
    return usual


@contextmanager
def sending(producer: Producer, options: Namespace, delivery: Delivery) -> Iterator[None]:
    """What was given out is delivered at the end, or it fails; a transaction is committed, or aborted if it fails."""
    wait_s = DELIVERY_S + options.timeout
    if not options.transaction:
        try:
            yield
        finally:
            producer.flush(wait_s)
            delivery.flush()
        delivery.check(undelivered=len(producer))
        return
    _begin(producer, options)
    try:
        yield
        producer.flush(wait_s)
        delivery.check(undelivered=len(producer))
    except BaseException:
        _abort(producer, delivery, wait_s)
        raise
    try:
        producer.commit_transaction(wait_s)
    except KafkaException as wrong:
        told = f"the transaction could not be committed: {reason(wrong)}"
        if not kafka_error(wrong).txn_requires_abort():
            raise CommandFailed(f"{told}; nobody answered whether it was") from None
        _abort(producer, delivery, wait_s)
        raise CommandFailed(told) from None
    except BaseException:
        _abort(producer, delivery, wait_s)
        raise
    delivery.flush()


def _abort(producer: Producer, delivery: Delivery, wait_s: float) -> None:
    delivery.prints = False  # what was purged is nowhere
    _told(lambda: producer.abort_transaction(wait_s), "the transaction could not be aborted; the broker will")


def _begin(producer: Producer, options: Namespace) -> None:
    _told(lambda: producer.init_transactions(DELIVERY_S + options.timeout), "no transaction could be begun")
    producer.begin_transaction()


def _told(do: Callable[[], object], what: str) -> None:
    try:
        do()
    except KafkaException as wrong:
        raise CommandFailed(f"{what}: {reason(wrong)}") from None


def send(producer: Producer, record: OutgoingRecord, options: Namespace, delivery: Delivery, *, is_typed: bool) -> None:
    place: dict[str, Any] = {}
    if options.partition is not None:
        place["partition"] = options.partition
    elif options.keep_partitions and record.partition is not None:
        place["partition"] = record.partition
    if record.timestamp_ms is not None:
        place["timestamp"] = record.timestamp_ms
    while True:
        try:
            producer.produce(
                options.topic,
                record.value,
                record.key,
                headers=record.headers,
                on_delivery=delivery.on_delivery,
                **place,
            )
        except BufferError:
            producer.poll(QUEUE_PAUSE_S)
            continue
        except KafkaException as wrong:
            size_bytes = len(record.value or b"")
            raise CommandFailed(delivery_failure(options.topic, kafka_error(wrong), size_bytes=size_bytes)) from None
        break
    # A person who types wants to see a failure before the next line; a pipe wants speed.
    if is_typed:
        producer.flush(DELIVERY_S)
        delivery.flush()
    producer.poll(0)
