"""`moldau consume`: print the records of topics, by assigned partitions and without a group, or as a member of one."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.completion.kinds import GROUP, PARTITION, TOPIC
from moldau.cli.connection import add_connection_options, client_settings
from moldau.cli.ending import Terminated, ended_by_signals
from moldau.cli.failures import OK, UsageError
from moldau.cli.parsing import Parser, with_values
from moldau.cli.records import offsets
from moldau.cli.records import text as record_text
from moldau.cli.records.json import record_as_json
from moldau.cli.records.printing import Format, Printer, chosen_filter
from moldau.cli.records.reading import Wanted, read_assigned
from moldau.cli.records.schemas.options import NONE, READING_HELP, add_reading_options, registry_url
from moldau.cli.records.selection import Selection, pattern_of
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster
from moldau.client.fetched import FetchedRecord
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.cli.records.schemas.decoding import RecordDecoder

EXAMPLES = """\
examples:
  moldau consume orders                              new records, until Ctrl-C
  moldau consume orders --from-beginning -e          everything there is
  moldau consume orders --offset -10 --show timestamp,key,value
  moldau consume orders --offset @-1h:end -o json    the last hour, one JSON object a line
  moldau consume orders -e --from-beginning -o json | moldau produce copy -i json
  moldau consume -r 'orders-.*' -f '%t %T{%F %T} %k: %v\\n'
  moldau consume orders -g billing                   as a member of a group, which commits what was printed
  moldau consume orders -e --from-beginning --grep '(?i)error' -n 5
  moldau consume orders --registry http://localhost:8081      Avro, JSON Schema and Protobuf as JSON

Without an end it follows the topics: new partitions are read from their start, and it says when a topic goes.
Ctrl-C ends it with exit code 0.
"""
Shown = TypeVar("Shown")
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.isolation_level is None:
        options.isolation_level = client_settings(options).get("isolation.level", READ_UNCOMMITTED)
    decoder = chosen_decoder(options)
    show, keeps = chosen_format(options, decoder), chosen_filter(options)
    if decoder is not None and keeps is not None:
        keeps = of_decoded(keeps, decoder)
    printer = Printer(show, keeps=keeps, limit=options.max_messages)
    selection, bounds = chosen_topics(options), chosen_bounds(options)
    try:
        with ended_by_signals(), open_cluster(options) as cluster:
            if options.group is not None:
                read_group(cluster, options, selection, bounds, printer)
            else:
                read_assigned(cluster, wanted_of(options, selection, bounds), printer)
    except Terminated:
        raise
    except KeyboardInterrupt:
        pass  # the usual way to end it
    finally:
        printer.close()
        if decoder is not None:
            decoder.close()
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau consume",
        description="Print the records of topics, of all their partitions, without joining a group.",
        epilog=f"{EXAMPLES}\n{offsets.HELP}\n{record_text.HELP}\n{READING_HELP}",
    )
    parser.add_argument("topics", metavar=TOPIC, nargs="*")
    _add_selection(parser)
    _add_output(parser)
    add_reading_options(parser)
    add_connection_options(parser)
    return parser.parse_words(with_offsets(arguments), "topics")


def with_offsets(arguments: list[str]) -> list[str]:
    for before, word in pairwise(arguments):
        if before == "-o" and (word in {"start", "end"} or word[:1] in set("+-@:0123456789")):
            raise UsageError(f"-o {word}: -o is the form of the output; where to begin is said by --offset {word}")
    return with_values(arguments, "--offset")


def _add_selection(parser: Parser) -> None:
    where = parser.add_argument_group("what to read")
    where.add_argument(
        "-r", "--regex", metavar="PATTERN", help="the topics whose whole name this matches, later ones too"
    )
    where.add_argument("-g", "--group", metavar=GROUP, help="read as a member of this group, and commit its offsets")
    where.add_argument(
        "-p",
        "--partition",
        metavar=PARTITION,
        type=int,
        action="append",
        default=[],
        help="only this one; may be repeated",
    )
    begin = where.add_mutually_exclusive_group()
    begin.add_argument("-B", "--from-beginning", action="store_true", help="the same as --offset start")
    begin.add_argument(
        "--offset",
        metavar="OFFSET",
        help="where to begin, or a range; see below (default: end); for a group start or end, where it committed none",
    )
    where.add_argument("-n", "--max-messages", metavar="N", type=count, help="leave after this many records")
    until = where.add_mutually_exclusive_group()
    until.add_argument("-e", "--exit-at-end", action="store_true", help="leave where the topic ended when we began")
    until.add_argument("--follow", action="store_true", help="go on for ever (default without -e and a range)")
    where.add_argument(
        "--isolation-level",
        choices=(READ_COMMITTED, READ_UNCOMMITTED),
        help="whether records of open and aborted transactions are left out (default: read_uncommitted)",
    )
    only = parser.add_argument_group("what to print: records in which a regular expression finds something")
    only.add_argument("--grep", metavar="PATTERN", help="in the key or the value")
    only.add_argument("--grep-key", metavar="PATTERN")
    only.add_argument("--grep-value", metavar="PATTERN")
    only.add_argument("--grep-header", metavar="PATTERN", help="in a header, as NAME=VALUE")


def _add_output(parser: Parser) -> None:
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


def count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)


def chosen_decoder(options: Namespace) -> RecordDecoder | None:
    if options.registry_for == NONE:
        return None
    if registry_url(options) is None:
        option = "--strict" if options.strict else "--registry-for" if options.registry_for else None
        if option is not None:
            raise UsageError(f"{option}: of which registry? Give --registry URL, or MOLDAU_REGISTRY")
        return None
    from moldau.cli.records.schemas.decoding import open_decoder

    return open_decoder(options)


def of_decoded(show: Callable[[FetchedRecord], Shown], decoder: RecordDecoder) -> Callable[[FetchedRecord], Shown]:
    return lambda record: show(decoder.in_text(record))


def chosen_format(options: Namespace, decoder: RecordDecoder | None = None) -> Format:
    if options.output != "text":
        if decoder is not None:
            return lambda record: record_as_json(record, decoder.parts(record).in_json()).encode() + b"\n"
        return lambda record: record_as_json(record).encode() + b"\n"
    try:
        text = options.format or record_text.format_of((options.show or "value").split(","))
        show = record_text.compile_format(text, null_marker=options.null_marker.encode())
    except ValueError as wrong:
        raise UsageError(str(wrong)) from None
    return show if decoder is None else of_decoded(show, decoder)


def chosen_topics(options: Namespace) -> Selection:
    if options.regex is not None and options.topics:
        raise UsageError(f"unexpected argument {options.topics[0]!r}: --regex says which topics to read")
    if options.regex is None and not options.topics:
        raise UsageError("which topic? Name one or more, or give a --regex; see: moldau consume --help")
    pattern = None if options.regex is None else pattern_of(options.regex, option="--regex")
    return Selection(tuple(dict.fromkeys(options.topics)), pattern, tuple(options.partition))


def chosen_bounds(options: Namespace) -> offsets.Range:
    text = "start" if options.from_beginning else options.offset or "end"
    try:
        bounds = offsets.parse_range(text, now_ms=SystemClock().now_ms())
    except ValueError as wrong:
        raise UsageError(f"--offset: {wrong}") from None
    if bounds.end is not None and options.follow:
        raise UsageError(f"--follow: {text} has an end")
    if options.group is not None:
        if bounds not in (offsets.Range(offsets.START), offsets.Range(offsets.END)):
            raise UsageError(f"--offset {text}: a group begins at its committed offsets, else at start or end")
        if options.partition:
            raise UsageError("--partition: the group says who reads which partition; leave out one of the two")
    return bounds


def wanted_of(options: Namespace, selection: Selection, bounds: offsets.Range) -> Wanted:
    return Wanted(
        selection,
        bounds,
        is_committed=options.isolation_level == READ_COMMITTED,
        exits_at_end=options.exit_at_end,
    )


def read_group(
    cluster: Cluster, options: Namespace, selection: Selection, bounds: offsets.Range, printer: Printer
) -> None:
    from moldau.cli.librdkafka import Outage, client_config
    from moldau.cli.records.group_reading import Membership, read_as_member

    outage = Outage("consume", options)
    config = client_config(
        options,
        **{
            "group.id": options.group,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest" if bounds.start == offsets.START else "latest",
            "isolation.level": options.isolation_level,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 100,
            "error_cb": outage.on_error,
        },
    )
    read_as_member(cluster, config, Membership(selection, exits_at_end=options.exit_at_end), printer, outage)
