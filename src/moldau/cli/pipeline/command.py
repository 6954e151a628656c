"""The command line of `moldau pipeline`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser
from moldau.cli.pipeline.ages import with_ages
from moldau.cli.pipeline.watching import add_watcher_options

EXAMPLES = """\
examples:
  moldau pipeline check orders.sql                   what is wrong with it, before anything runs
  moldau pipeline graph orders.sql --as mermaid
  moldau pipeline run orders.sql                     until Ctrl-C; progress with rates, lag and watermark
  moldau pipeline run orders.sql --once              what is there now, then end
  moldau pipeline run orders.sql --master spark://head:7077
  moldau pipeline run spark-pipeline.yml --every 10s    Spark's own Declarative Pipelines, kept up to date
  moldau pipeline status orders.sql
  moldau pipeline stop orders.sql
  moldau pipeline reset orders.sql --yes             forget how far it came
  moldau pipeline replay orders.sql --from -2h       run anew from two hours ago; asks before
"""
CLIENT, CLUSTER = DEPLOY_MODES = ("client", "cluster")
DRAWINGS = ("text", "mermaid", "dot")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.pipeline.acting import act

    return act(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau pipeline",
        description="Pipelines on Spark: a file says what is read, what is computed and where results go.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, does: str, summary: str) -> ArgumentParser:
        made = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        made.add_argument("file", type=Path, metavar="FILE", help="a .sql or .py file, or a spark-pipeline.yml")
        made.add_argument(
            "--set",
            dest="settings",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="before the file's own: bootstrap.servers, checkpoint, spark.…; may be repeated",
        )
        made.set_defaults(action=does)
        return made

    add_run_options(action("run", "run", "run it, and show its progress"))
    checking = action("check", "check_file", "say what is wrong with it, before anything runs")
    checking.add_argument("--quick", action="store_true", help="without Spark: only what the file itself shows")
    checking.add_argument("--master", help="Spark to check with")
    drawing = action("graph", "graph", "draw it")
    drawing.add_argument("--master", help="Spark to read a spark-pipeline.yml with; other files need none")
    drawing.add_argument("--as", dest="drawing", choices=DRAWINGS, default="text")
    add_output_option(action("status", "status", "how its queries are"))
    action("stop", "stop", "end it where it runs; it goes on from there when it is run again")
    resetting = action("reset", "reset", "forget its progress: the next run begins anew")
    resetting.add_argument("--yes", action="store_true", help="without this, only say what would go")
    resetting.add_argument("--sink", action="append", help="only this one; may be given again")
    replaying = action("replay", "replay", "run anew from an earlier time, and forget the progress that it had")
    replaying.add_argument("--from", dest="start", required=True, help="-2h, -30m, earliest, or 2026-01-31T12:00:00")
    replaying.add_argument("--yes", action="store_true", help="do not ask")
    add_run_options(replaying)
    return parser.parse_args(with_ages(arguments))


def add_run_options(parser: ArgumentParser) -> None:
    parser.add_argument("--master", help="local[2], spark://…, yarn, k8s://… or a Connect URL, sc://…")
    parser.add_argument(
        "--deploy-mode", choices=DEPLOY_MODES, default=CLIENT, help="cluster: the driver runs there too"
    )
    parser.add_argument("--once", action="store_true", help="what is there now, whatever the file's schedules say")
    parser.add_argument("--every", metavar="DURATION", help="of a spark-pipeline.yml: how often it is updated (10s)")
    parser.add_argument(
        "--full-refresh",
        action="append",
        metavar="NAME",
        help="of a spark-pipeline.yml: compute this table anew with the first update, or `all`; may be repeated",
    )
    parser.add_argument("--restarts", type=int, metavar="N", help="give a query up after N restarts (default: never)")
    parser.add_argument("--quiet", action="store_true", help="no progress, only what goes wrong")
    add_watcher_options(parser)
