"""`moldau plan`: partitions, brokers and disks for a wanted load, each number with its reason."""

from __future__ import annotations

import shutil
import sys
import textwrap
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from moldau.cli.failures import OK, UsageError
from moldau.cli.output import CSV, JSON_LINES, add_output_option, is_for_people, print_rows, print_value
from moldau.cli.parsing import Parser, whole
from moldau.cli.plan.figures import ASSUMED, WHERE_FROM, Figures, Measured, cache_path, load_measured, save_measured
from moldau.cli.plan.reasons import Row, create_line, rows_of
from moldau.cli.plan.sizing import Plan, TooLarge, Wanted, plan_for
from moldau.cli.progress import ProgressLine
from moldau.cli.units import count, duration, size

EXAMPLES = """\
examples:
  moldau plan --throughput 1GB/s                          20 partitions, with consumers of 50 MB/s each
  moldau plan --throughput 40MB/s --consumers 3 --retention 3d --peak 2
  moldau plan --messages 200k/s --record-size 512 --consumer-throughput 20MB/s
  moldau plan --throughput 200MB/s --brokers 6 --network 25Gbit/s --disk 1.2GB/s
  moldau plan --throughput 1GB/s --measure                with figures of this machine, which are kept for later plans
  moldau plan --throughput 1GB/s -o json | jq .partitions

Sizes are decimal (MB) or binary (MiB). More partitions than needed can be had later, but not for keys: with another
number of partitions a key's new records go to another partition than its old ones. Plan for what will be.
"""
DEFAULTS = {"retention": "7d", "headroom": "30%", "peak": 1.0, "consumers": 1, "replication": 3, "record_size": 1_000}
REPLICATION_MAX = 100
PEAK_MAX = 1_000.0
BITS = {"gbit/s": 125_000_000, "mbit/s": 125_000}
COLUMNS = ("what", "value", "why")
SECONDS_MAX = 60
NAMELESS = "TOPIC"
LINE_MAX, LINE_MIN = 120, 80


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    wanted = wanted_of(options)
    path = cache_path()
    measured = measure(options, path) if options.measure else load_measured(path)
    figures, sources = figures_of(options, measured)
    try:
        plan = plan_for(wanted, figures)
    except TooLarge as wrong:
        raise UsageError(str(wrong)) from None
    rows = rows_of(plan, wanted, figures)
    if is_for_people(options.output):
        show(plan, wanted, rows, sources=sources, measured=measured, topic=options.topic)
    elif options.output in (CSV, JSON_LINES):
        print_rows([each.row() for each in rows], columns=COLUMNS, output=options.output)
    else:
        print_value(
            document(plan, wanted, rows, figures=figures, sources=sources, topic=options.topic), output=options.output
        )
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau plan",
        description="Partitions, brokers and disks for a wanted load, each number with its reason.",
        epilog=EXAMPLES,
    )
    _add_load(parser)
    _add_hardware(parser)
    add_output_option(parser)
    options = parser.parse_args(arguments)
    if (options.throughput is None) == (options.messages is None):
        raise UsageError("give --throughput SIZE/s, or --messages N/s with --record-size; see: moldau plan --help")
    return options


def _add_load(parser: Parser) -> None:
    load = parser.add_argument_group("the load")
    load.add_argument(
        "--throughput", metavar="SIZE/s", type=size, help="what producers send on average, such as 100MB/s"
    )
    load.add_argument("--messages", metavar="N/s", type=count, help="the same as a number of records, such as 50k/s")
    load.add_argument(
        "--record-size",
        metavar="SIZE",
        type=size,
        default=DEFAULTS["record_size"],
        help="of one record (default: 1000)",
    )
    load.add_argument(
        "--peak", metavar="FACTOR", type=factor, default=DEFAULTS["peak"], help="busiest minutes to average (1)"
    )
    reading = load.add_mutually_exclusive_group()
    reading.add_argument(
        "--consumers",
        metavar="N",
        type=whole(0, 10_000, "number of groups"),
        default=DEFAULTS["consumers"],
        help="groups that each read all of it (default: 1)",
    )
    reading.add_argument("--read-throughput", metavar="SIZE/s", type=size, help="what all consumers read together")
    load.add_argument(
        "--retention", metavar="TIME", type=duration, default=DEFAULTS["retention"], help="how long records stay (7d)"
    )
    load.add_argument(
        "--replication",
        metavar="N",
        type=whole(1, REPLICATION_MAX, "number of replicas"),
        default=DEFAULTS["replication"],
        help="replicas of each partition (default: 3)",
    )
    load.add_argument("--topic", metavar="NAME", default=NAMELESS, help="for the command that creates it")


def _add_hardware(parser: Parser) -> None:
    hardware = parser.add_argument_group("what there is", "measured, or assumed where nothing is said")
    hardware.add_argument(
        "--brokers", metavar="N", type=whole(1, 10_000, "number of brokers"), help="where it is fixed"
    )
    hardware.add_argument("--producer-throughput", metavar="SIZE/s", type=size, help="into one partition")
    hardware.add_argument(
        "--consumer-throughput", metavar="SIZE/s", type=size, help="of one consumer, with its own work"
    )
    hardware.add_argument("--broker-throughput", metavar="SIZE/s", type=size, help="written by one broker process")
    hardware.add_argument("--disk", metavar="SIZE/s", type=size, help="written by the disks of one broker")
    hardware.add_argument("--network", metavar="RATE", type=network, help="of one broker, such as 10Gbit/s or 1.25GB/s")
    hardware.add_argument(
        "--headroom", metavar="PERCENT", type=percent, default=DEFAULTS["headroom"], help="what stays free (30%%)"
    )
    hardware.add_argument(
        "--measure", action="store_true", help="measure on this machine first, with a broker of its own"
    )
    hardware.add_argument(
        "--measure-seconds",
        metavar="N",
        type=whole(1, SECONDS_MAX, "number of seconds"),
        default=5,
        help="for each of three measurements (default: 5)",
    )
    hardware.add_argument(
        "--data", metavar="DIR", default=".", help="where the measurement writes, at most 2 GB (default: this folder)"
    )


def factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= PEAK_MAX:
        raise ArgumentTypeError(f"{text!r} is no factor; expected 1 to {PEAK_MAX:g}")
    return value


def percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value <= 0.9:
        raise ArgumentTypeError(f"{text!r} is no share; expected 0% to 90%")
    return value


def network(text: str) -> float:
    for unit, bytes_per_s in BITS.items():
        if text.lower().endswith(unit):
            return count(text[: -len(unit)].strip()) * bytes_per_s
    return float(size(text))


def wanted_of(options: Namespace) -> Wanted:
    write = float(options.throughput) if options.throughput else options.messages * options.record_size
    read = float(options.read_throughput) if options.read_throughput else write * options.consumers
    return Wanted(
        write,
        read,
        options.peak,
        options.retention,
        options.replication,
        options.headroom,
        options.brokers,
    )


def figures_of(options: Namespace, measured: Measured | None) -> tuple[Figures, dict[str, str]]:
    """What was said counts, then what was measured, then what is assumed; and which of them it was."""
    figures = ASSUMED
    sources = {name: f"assumed: {what}" for name, what in WHERE_FROM.items()}
    if measured is not None:
        # A broker appends what followers fetch in larger batches than producers send, so this is the least it does.
        seen = {
            "producer": measured.producer,
            "consumer": measured.consumer,
            "broker": measured.producer,
            "disk": measured.disk,
        }
        figures = replace(figures, **seen)
        sources |= dict.fromkeys(seen, f"measured on {measured.machine}, {measured.at}")
    said = {
        "producer": options.producer_throughput,
        "consumer": options.consumer_throughput,
        "broker": options.broker_throughput,
        "disk": options.disk,
        "network": options.network,
    }
    given = {name: float(value) for name, value in said.items() if value is not None}
    return replace(figures, **given), sources | dict.fromkeys(given, "as given")


def measure(options: Namespace, path: Path) -> Measured:
    from moldau.cli.plan.measuring import measure_machine

    with ProgressLine() as progress:
        measured = measure_machine(
            Path(options.data), record_size=options.record_size, seconds=options.measure_seconds, tell=progress.tell
        )
    try:
        save_measured(path, measured)
    except OSError as wrong:
        print(f"moldau plan: the figures are not kept: cannot write {path}: {wrong.strerror}", file=sys.stderr)
    return measured


def show(
    plan: Plan, wanted: Wanted, rows: Sequence[Row], *, sources: dict[str, str], measured: Measured | None, topic: str
) -> None:
    print_wrapped(rows)
    print("\nfigures")
    for name, source in sources.items():
        print(f"  {name:<9} {source}")
    if measured is None:
        print("  to measure them on this machine: add --measure")
    print(f"\n{create_line(plan, wanted, topic)}")
    for line in warnings(plan, wanted):
        print(line)


def print_wrapped(rows: Sequence[Row]) -> None:
    """As other tables are, with the reasons in several lines."""
    width = min(LINE_MAX, max(LINE_MIN, shutil.get_terminal_size((LINE_MAX, 24)).columns))
    first = max(len(each.what) for each in rows)
    second = max(len(each.value) for each in rows)
    print(f"{'WHAT':<{first}}  {'VALUE':<{second}}  WHY")
    for each in rows:
        lines = textwrap.wrap(each.why, width - first - second - 4, break_long_words=False)
        print(f"{each.what:<{first}}  {each.value:<{second}}  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':<{first + second + 4}}{line}")


def warnings(plan: Plan, wanted: Wanted) -> list[str]:
    found = [
        "adding partitions later moves keys: new records of a key go to another partition than its old ones",
    ]
    if plan.is_short_of_brokers:
        needed = max(plan.needs, key=lambda each: each.brokers)
        found.append(f"{plan.brokers} brokers are too few: {needed.what} asks for {needed.brokers}")
    if wanted.replication == 1:
        found.append(
            "with one replica the loss of a broker stops its partitions, and the loss of its disk their records"
        )
    return [f"warning: {each}" for each in found]


def document(
    plan: Plan, wanted: Wanted, rows: Sequence[Row], *, figures: Figures, sources: dict[str, str], topic: str
) -> dict[str, object]:
    return {
        **asdict(plan),
        "wanted": asdict(wanted),
        "figures": {name: {"bytes_per_s": value, "source": sources[name]} for name, value in asdict(figures).items()},
        "rows": [each.row() for each in rows],
        "create": create_line(plan, wanted, topic),
        "warnings": [each.removeprefix("warning: ") for each in warnings(plan, wanted)],
    }
