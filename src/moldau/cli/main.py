"""The `moldau` command's tools: which there are, and how each of them ends."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from moldau.cli.failures import FAILED, INTERRUPTED, OK, USAGE, CommandFailed
from moldau.core.standard_streams import occupy_standard_streams


class Tool(NamedTuple):
    module: str
    summary: str
    reads_input: bool = False


TOOLS = {
    "topics": Tool("moldau.cli.topics.command", "list, create, describe and delete topics"),
    "produce": Tool("moldau.cli.records.produce", "send the lines of standard input to a topic", reads_input=True),
    "consume": Tool("moldau.cli.records.consume", "print the records of a topic"),
    "pipeline": Tool("moldau.cli.pipeline.command", "run, check and watch data pipelines on Spark"),
    "sql": Tool("moldau.cli.sql.command", "ask topics in SQL, on Spark"),
    "tables": Tool("moldau.cli.tables", "describe, optimize and vacuum the tables that queries write to"),
    "retention": Tool("moldau.cli.retention", "readers that retention may pass: warn, and hold it"),
    "zookeeper-config": Tool("moldau.cli.zookeeper_config", "files for a ZooKeeper ensemble, and a look at one"),
    "metadata-move": Tool("moldau.cli.metadata_move", "move a machine's metadata into ZooKeeper or etcd"),
    "certs": Tool("moldau.cli.certs.command", "make, show and renew certificates for TLS"),
    "users": Tool("moldau.cli.users.command", "users who log in with SCRAM, and their passwords"),
    "acls": Tool("moldau.cli.acls.command", "say who may do what"),
    "quotas": Tool("moldau.cli.quotas.command", "limit what users, client ids and addresses may use"),
    "dead-letters": Tool("moldau.cli.dead_letters", "records that a query refused: look at them, send them back"),
}

EXAMPLES = """\
examples:
  moldau start                                      a broker on localhost:9092, its data in ./moldau-data
  moldau start --port 0 --data-dir /tmp/try         on a free port, which it prints
  moldau topics create orders --partitions 3
  echo 'hello' | moldau produce orders
  moldau consume orders --from-beginning -e

exit codes: 0 done, 1 the cluster said no or did not answer, 2 the command line or its input is wrong
"""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in TOOLS:
        return without_a_tool(arguments)
    name, *rest = arguments
    # Only the tool that runs is imported: the client library takes longer to load than most tools take to finish.
    command: Callable[[list[str]], int] = import_module(TOOLS[name].module).main
    return run_tool(name, lambda: command(rest))


def run_tool(name: str, command: Callable[[], int]) -> int:
    """A tool's exit code, with every expected way to fail turned into one line."""
    from confluent_kafka import KafkaException

    from moldau.cli.connection import reason
    from moldau.cli.output import close_quietly

    try:
        check_streams(name)
        exit_code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code
    except CommandFailed as failed:
        return complain(name, str(failed), exit_code=failed.exit_code)
    except KafkaException as wrong:
        return complain(name, reason(wrong), exit_code=FAILED)
    except BrokenPipeError:
        close_quietly()
        return OK
    except OSError as wrong:
        close_quietly()
        where = f": {wrong.filename}" if wrong.filename is not None else ""
        return complain(name, f"input or output: {wrong.strerror or wrong}{where}", exit_code=FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def check_streams(name: str) -> None:
    """Python has None for a stream that was closed before it started."""
    occupy_standard_streams()
    needed, stream = ("input", sys.stdin) if TOOLS[name].reads_input else ("output", sys.stdout)
    if stream is None:
        raise CommandFailed(f"standard {needed} is closed")


def complain(name: str, message: str, *, exit_code: int) -> int:
    if sys.stderr is not None:  # or print would take standard output for it
        print(f"moldau {name}: {message}", file=sys.stderr)
    return exit_code


def without_a_tool(arguments: list[str]) -> int:
    """Help, the version, or a usage error that lists the tools; argparse leaves with the right code for each."""
    parser = ArgumentParser(
        prog="moldau",
        description="Event streaming that speaks Apache Kafka's protocol: one broker, and the tools to try it with.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("start", help="run a broker")
    for name, tool in TOOLS.items():
        commands.add_parser(name, help=tool.summary)
    parser.parse_args(arguments)
    return USAGE


def version() -> str:
    from importlib.metadata import version as installed

    return f"moldau {installed('moldau')}"
