"""`moldau console-consumer`: print records with the options and the formatters of Apache Kafka's tool.

Without `--group` Apache Kafka's tool makes up a group and joins it; here partitions are read without any.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from moldau.cli.connection import client_settings
from moldau.cli.ending import Terminated, ended_by_signals
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.commands.console_consumer import SHUTDOWN
from moldau.cli.kafka.console.formatters import Formatter, formatter
from moldau.cli.kafka.console.properties import tool_properties, without_java_only
from moldau.cli.records import offsets
from moldau.cli.records.reading import Idle, Wanted, read_assigned
from moldau.cli.records.selection import Selection, pattern_of
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster
from moldau.client.fetched import FetchedRecord

EARLIEST, LATEST = "earliest", "latest"


def run(options: Namespace) -> int:
    chosen_start(options.offset or LATEST)
    printer = FormattingPrinter(
        chosen_formatter(options), limit=options.max_messages, skips_errors=options.skip_message_on_error
    )
    try:
        with ended_by_signals(), open_cluster(options) as cluster:
            read(cluster, options, printer)
    except Terminated:
        raise
    except (KeyboardInterrupt, Idle):
        pass  # the usual ways to end it
    finally:
        printer.close()
    if options.enable_systest_events:
        print(SHUTDOWN, flush=True)
    return OK


def chosen_formatter(options: Namespace) -> Formatter:
    properties = tool_properties(options.formatter_config, (), option="--formatter-config")
    for name, given in (
        ("key.deserializer", options.key_deserializer),
        ("value.deserializer", options.value_deserializer),
    ):
        if given:
            properties[name] = given
    properties |= tool_properties(None, options.formatter_property, option="--formatter-property")
    return formatter(options.formatter, properties)


class FormattingPrinter:
    """Counts what it was given, as Apache Kafka's tool does, and says so at the end."""

    def __init__(self, show: Formatter, *, limit: int | None, skips_errors: bool) -> None:
        self._show = show
        self._limit = None if limit is None or limit < 0 else limit
        self._skips_errors = skips_errors
        self._count = 0
        self._out = sys.stdout.buffer

    @property
    def is_full(self) -> bool:
        return self._limit is not None and self._count >= self._limit

    def take(self, record: FetchedRecord) -> None:
        self._count += 1
        try:
            self._out.write(self._show(record))
        except OSError:
            raise
        except Exception as wrong:  # of a formatter, which may be the user's own
            told = f"{record.topic}-{record.partition} offset {record.offset}: {wrong or type(wrong).__name__}"
            if not self._skips_errors:
                raise CommandFailed(f"{told}; --skip-message-on-error goes on") from None
            print(f"moldau console-consumer: skipped {told}", file=sys.stderr)

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        self.flush()
        print(f"Processed a total of {self._count} messages", file=sys.stderr)


def read(cluster: Cluster, options: Namespace, printer: FormattingPrinter) -> None:
    settings = client_settings(options)
    group = options.group or settings.get("group.id")
    if options.group is not None and settings.get("group.id", options.group) != options.group:
        raise UsageError(f"--group {options.group} and group.id={settings['group.id']}: which of them?")
    reset = settings.get("auto.offset.reset", EARLIEST if options.from_beginning else LATEST)
    if options.from_beginning and reset not in (EARLIEST, "smallest", "beginning"):
        raise UsageError(f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}'")
    isolation = options.isolation_level or settings.get("isolation.level", "read_uncommitted")
    pattern = None if options.include is None else pattern_of(options.include, option="--include")
    selection = Selection(
        () if options.topic is None else (options.topic,),
        pattern,
        () if options.partition is None else (options.partition,),
        may_create=True,
    )
    idle_s_max = None if options.timeout_ms is None or options.timeout_ms < 0 else options.timeout_ms / 1_000
    if group and options.partition is None:
        _read_group(
            cluster, options, selection, printer, group=group, reset=reset, isolation=isolation, idle=idle_s_max
        )
        return
    start = offsets.Range(chosen_start(options.offset or reset))
    wanted = Wanted(
        selection, start, is_committed=isolation == "read_committed", idle_s_max=idle_s_max, tool="console-consumer"
    )
    read_assigned(cluster, wanted, printer)


def _read_group(
    cluster: Cluster, options: Namespace, selection: Selection, printer: FormattingPrinter, **how: Any
) -> None:
    from moldau.cli.librdkafka import Outage, client_config
    from moldau.cli.records.group_reading import Membership, read_as_member

    outage = Outage("console-consumer", options)
    config = {
        "allow.auto.create.topics": True,
        "fetch.wait.max.ms": 100,
        "error_cb": outage.on_error,
        **without_java_only(client_config(options)),
        "group.id": how["group"],
        "enable.auto.offset.store": False,
        "auto.offset.reset": how["reset"],
        "isolation.level": how["isolation"],
    }
    read_as_member(cluster, config, Membership(selection, idle_s_max=how["idle"]), printer, outage)


def chosen_start(text: str) -> offsets.Start:
    known = {EARLIEST: offsets.START, "smallest": offsets.START, "beginning": offsets.START, LATEST: offsets.END}
    if text.lower() in known:
        return known[text.lower()]
    if not text.isdecimal():
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a non-negative"
            " long."
        )
    return offsets.Start(offsets.Anchor.OFFSET, int(text))
