"""The command line of `moldau monitor`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser, log_level
from moldau.cli.settling import seconds
from moldau.core.logs import LOG_FORMATS, LOG_LEVELS

EXAMPLES = """\
examples:
  moldau monitor                                     the cluster on localhost:9092; answers on localhost:8000
  moldau monitor -b kafka-1:9092 --history lag.db    what was seen survives a restart
  moldau monitor --config monitor.toml               several clusters, rules, who is told of groups in trouble
  moldau monitor --log-format json                   a log that programs read
  moldau monitor --once                              one look: a table, and exit code 1 if a group is in ERR
  curl localhost:8000/v3/kafka/local/consumer/billing/status
  curl localhost:8000/metrics                        for Prometheus

The file, and what each status means: docs/guides/lag-monitor.md. As a service: pip install 'moldau[monitor]'.
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.monitor.running import run_logged

    return run_logged(options)


def parse(arguments: list[str]) -> Namespace:
    description = "Watch the lag of consumer groups: Burrow's verdicts and answers, and lag in seconds."
    parser = Parser(prog="moldau monitor", description=description, epilog=EXAMPLES)
    parser.add_argument("--config", metavar="FILE", help="clusters, rules and notifiers, in TOML")
    parser.add_argument("--once", action="store_true", help="print a verdict on each group, and end")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="where to answer over HTTP (default: 127.0.0.1:8000; port 0: a free one)"
    )
    parser.add_argument("--history", metavar="FILE", help="a SQLite file for what was seen (default: none)")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, help="from one look at a cluster to the next (default: 10)"
    )
    parser.add_argument("--log-level", metavar="LEVEL", type=log_level, default="INFO", help=", ".join(LOG_LEVELS))
    parser.add_argument(
        "--log-format", choices=LOG_FORMATS, default="text", help="json is one object a line (default: text)"
    )
    parser.add_argument(
        "--log-file", metavar="FILE", type=Path, help="append the log to this file (default: standard error)"
    )
    add_output_option(parser)
    add_connection_options(parser)
    return parser.parse_args(arguments)
