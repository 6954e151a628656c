"""`moldau verify`: what to do to which cluster, and the exit code that says whether it held."""

from __future__ import annotations

import secrets
import sys
import tempfile
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.connection import add_connection_options, client_settings
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError, meant
from moldau.cli.output import add_output_option, print_rows
from moldau.cli.parsing import Parser, whole
from moldau.cli.questions import add_yes_option, ask

if TYPE_CHECKING:
    from moldau.cli.verify.catalogue import Scenario
    from moldau.cli.verify.clusters.target import Target
    from moldau.cli.verify.trial import Wishes

EXAMPLES = """\
examples:
  moldau verify                                         every scenario, on three brokers that it starts
  moldau verify list                                    which scenarios there are
  moldau verify leader-election rolling-restart --brokers 5
  moldau verify leader-election --rounds 10 -o json     all figures
  moldau verify -b kafka-1:9092                         a cluster that runs: what needs no hands on its brokers
  moldau verify -b kafka-1:9092 leader-election --yes \\
      --stop-broker 'ssh kafka-{id} systemctl kill -s KILL kafka' --start-broker 'ssh kafka-{id} systemctl start kafka'
  moldau verify -b kafka-1:9092 rolling-restart --restart-broker 'ssh kafka-{id} systemctl restart kafka'

A cluster is given by -b, --profile, --command-config or -X, not by the environment. Topics and groups that are made
there begin with moldau-verify- and are removed at the end. Commands for brokers run in a shell, with the broker's id
for {id}; where one is missing you are asked at a terminal, and elsewhere the scenario is skipped.

exit codes: 0 all held, 1 something was lost, duplicated, out of order or did not recover, 2 the command line is wrong
"""
PREFIX = "moldau-verify"
LIST = "list"
BROKERS = 3
BROKERS_MAX = 9  # more processes than a machine has cores measure the machine
SECONDS_MAX = 3_600.0


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.verify.catalogue import SCENARIOS

    if options.scenarios == [LIST]:
        rows = [{"scenario": each.name, "what": each.summary, "commands": each.hooks} for each in SCENARIOS]
        print_rows(rows, columns=("scenario", "what", "commands"), output=options.output)
        return OK
    chosen = _chosen(options.scenarios, SCENARIOS)
    wishes = _wishes(options)
    from moldau.cli.verify.progress import Progress
    from moldau.cli.verify.report import print_report
    from moldau.cli.verify.running import ends_by_signals, run_all

    progress = Progress()
    prefix = f"{PREFIX}-{secrets.token_hex(3)}"
    with ends_by_signals(), ExitStack() as stack:
        target = _given(options) if _is_given(options) else _own(options, stack)
        copies = min(wishes.replicas, len(target.nodes))
        from moldau.cli.verify.clusters.own import min_insync

        wishes = replace(wishes, replicas=copies, min_insync=min_insync(copies))
        try:
            outcomes = run_all(chosen, target, wishes, progress, prefix=prefix)
        finally:
            progress.clear()
    print_report(outcomes, output=options.output)
    if all(each.skipped is not None for each in outcomes):
        raise CommandFailed("nothing was tried: every scenario was skipped")
    return FAILED if any(each.complaints for each in outcomes) else OK


def _chosen(names: Sequence[str], known: Sequence[Scenario]) -> list[Scenario]:
    by_name = {each.name: each for each in known}
    for name in names:
        if name not in by_name:
            near = meant(name, [LIST, *by_name]) or f"; there are {', '.join(by_name)}"
            raise UsageError(f"unknown scenario {name!r}{near}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else [*known]


def _is_given(options: Namespace) -> bool:
    return bool(options.bootstrap_server or options.profile or options.command_config or options.properties)


def _own(options: Namespace, stack: ExitStack) -> Target:
    from moldau.cli.verify.clusters.own import own_cluster

    given = [f"--{each}" for each in _hook_names() if getattr(options, each.replace("-", "_")) is not None]
    if given:
        raise UsageError(f"{', '.join(given)}: of a cluster that is given with -b; one of ours needs no commands")
    keep = None
    if options.keep:
        keep = Path(tempfile.mkdtemp(prefix=f"{PREFIX}-"))
        stack.callback(print, f"data of the brokers is in {keep}", file=sys.stderr)
    return stack.enter_context(own_cluster(options.brokers or BROKERS, keep=keep))


def _given(options: Namespace) -> Target:
    from moldau.cli.verify.clusters.hooks import checked
    from moldau.cli.verify.clusters.target import GivenCluster
    from moldau.cli.wire import cluster_of

    for name in ("brokers", "keep"):
        if getattr(options, name):
            raise UsageError(f"--{name} is for a cluster of ours; -b gives one that is there")
    hooks = checked({each: getattr(options, each.replace("-", "_")) for each in _hook_names()})
    settings = client_settings(options)
    with cluster_of(settings, timeout_s=options.timeout) as client:
        nodes = client.nodes()
    brokers = ", ".join(f"{each.id} at {each.host}:{each.port}" for each in nodes.values())
    touched = ", which your commands stop and start" if hooks.commands else ""
    print(f"brokers {brokers}{touched}", file=sys.stderr)
    ask(f"Try this cluster, with topics and groups that begin with {PREFIX}-?", yes=options.yes)
    return GivenCluster(settings, nodes, hooks)


def _hook_names() -> Sequence[str]:
    from moldau.cli.verify.clusters.hooks import ACTIONS

    return ACTIONS


def _wishes(options: Namespace) -> Wishes:
    from moldau.cli.verify.trial import Wishes

    return Wishes(
        duration_s=options.duration,
        rate=options.rate,
        rounds=options.rounds,
        acks=-1 if options.acks == "all" else int(options.acks),
        recovery_s=options.recovery,
        delay_ms=options.delay,
    )


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= SECONDS_MAX:
        raise ArgumentTypeError(f"{text!r} is no time; expected seconds, more than 0 and up to {SECONDS_MAX:g}")
    return found


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau verify",
        description="Try what operators try before they trust a cluster: brokers and clients are killed, restarted and"
        " slowed under load, and no acknowledged record may be lost.",
        epilog=EXAMPLES,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="which ones (default: all), or list")
    parser.add_argument(
        "--brokers", type=whole(1, BROKERS_MAX, "number"), metavar="N", help=f"to start (default: {BROKERS})"
    )
    parser.add_argument("--keep", action="store_true", help="leave the data of the brokers that were started")
    _add_load_options(parser)
    hooks = parser.add_argument_group("commands for brokers of a cluster that is given, with {id} in them")
    for name in _hook_names():
        hooks.add_argument(f"--{name}", metavar="COMMAND")
    add_output_option(parser)
    add_yes_option(parser)
    add_connection_options(parser)
    return parser.parse_words(arguments, "scenarios")


def _add_load_options(parser: Parser) -> None:
    load = parser.add_argument_group("load")
    load.add_argument(
        "--duration", type=_seconds, default=5.0, metavar="SECONDS", help="of load in each scenario (default: 5)"
    )
    load.add_argument(
        "--rate", type=whole(1, 10_000, "rate"), default=200, metavar="N", help="records a second (default: 200)"
    )
    load.add_argument("--acks", choices=("all", "1", "0"), default="all", help="default: all, idempotent")
    load.add_argument(
        "--rounds", type=whole(1, 1_000, "number"), default=3, metavar="N", help="of kills in a scenario (default: 3)"
    )
    load.add_argument(
        "--recovery", type=_seconds, default=90.0, metavar="SECONDS", help="a cluster may take to recover (default: 90)"
    )
    load.add_argument(
        "--delay", type=whole(1, 60_000, "time"), default=200, metavar="MS",
        help="of each write on the slow disk of a broker of ours (default: 200)",
    )  # fmt: skip
