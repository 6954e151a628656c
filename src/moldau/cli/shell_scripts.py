"""`moldau shell-scripts`: scripts with the names of Apache Kafka's, for what cannot call ours by another name."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.parsing import Parser
from moldau.cli.tools import ALIASES, TOOLS

EXAMPLES = """\
Every tool that takes Apache Kafka's options gets its script, and kafka-run-class.sh knows their classes, those of old
as kafka.tools.DumpLogSegments, too. A file that this command did not write stays, and nothing is written.

examples:
  moldau shell-scripts ~/kafka/bin
  PATH=~/kafka/bin:$PATH kafka-topics.sh --list --bootstrap-server localhost:9092
"""
MARK = "# Written by `moldau shell-scripts`, which may write it anew."
PERMISSIONS = 0o755

_ADMIN, _TOOLS, _OLD = "kafka.admin", "org.apache.kafka.tools", "kafka.tools"
# The classes that Apache Kafka's scripts run, and ran.
CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "acls": (f"{_TOOLS}.AclCommand", f"{_ADMIN}.AclCommand"),
        "broker-api-versions": (f"{_TOOLS}.BrokerApiVersionsCommand", f"{_ADMIN}.BrokerApiVersionsCommand"),
        "client-metrics": (f"{_TOOLS}.ClientMetricsCommand",),
        "cluster": (f"{_TOOLS}.ClusterTool", f"{_OLD}.ClusterTool"),
        "configs": (f"{_ADMIN}.ConfigCommand", f"{_TOOLS}.ConfigCommand"),
        "console-consumer": (f"{_TOOLS}.consumer.ConsoleConsumer", f"{_OLD}.ConsoleConsumer"),
        "console-producer": (f"{_TOOLS}.ConsoleProducer", f"{_OLD}.ConsoleProducer"),
        "consumer-groups": (f"{_TOOLS}.consumer.group.ConsumerGroupCommand", f"{_ADMIN}.ConsumerGroupCommand"),
        "consumer-perf": (f"{_TOOLS}.ConsumerPerformance", f"{_OLD}.ConsumerPerformance"),
        "delegation-tokens": (f"{_TOOLS}.DelegationTokenCommand", f"{_ADMIN}.DelegationTokenCommand"),
        "delete-records": (f"{_TOOLS}.DeleteRecordsCommand", f"{_ADMIN}.DeleteRecordsCommand"),
        "dump-log": (f"{_TOOLS}.DumpLogSegments", f"{_OLD}.DumpLogSegments"),
        "e2e-latency": (f"{_TOOLS}.EndToEndLatency", f"{_OLD}.EndToEndLatency"),
        "features": (f"{_TOOLS}.FeatureCommand", f"{_ADMIN}.FeatureCommand"),
        "get-offsets": (f"{_TOOLS}.GetOffsetShell", f"{_OLD}.GetOffsetShell"),
        "groups": (f"{_TOOLS}.GroupsCommand",),
        "leader-election": (f"{_TOOLS}.LeaderElectionCommand", f"{_ADMIN}.LeaderElectionCommand"),
        "log-dirs": (f"{_TOOLS}.LogDirsCommand", f"{_ADMIN}.LogDirsCommand"),
        "metadata-quorum": (f"{_TOOLS}.MetadataQuorumCommand", f"{_ADMIN}.MetadataQuorumCommand"),
        "producer-perf": (f"{_TOOLS}.ProducerPerformance", f"{_OLD}.ProducerPerformance"),
        "reassign-partitions": (
            f"{_TOOLS}.reassign.ReassignPartitionsCommand",
            f"{_ADMIN}.ReassignPartitionsCommand",
        ),
        "replica-verification": (f"{_TOOLS}.ReplicaVerificationTool", f"{_OLD}.ReplicaVerificationTool"),
        "streams-application-reset": (f"{_TOOLS}.StreamsResetter", f"{_OLD}.StreamsResetter"),
        "topics": (f"{_TOOLS}.TopicCommand", f"{_ADMIN}.TopicCommand"),
        "transactions": (f"{_TOOLS}.TransactionsCommand",),
        "verifiable-consumer": (f"{_TOOLS}.VerifiableConsumer",),
        "verifiable-producer": (f"{_TOOLS}.VerifiableProducer",),
    }
)
# The tool of this name chose the kind of election by its name, and took all partitions unless it was told which.
PREFERRED = "preferred-replica-election"
PREFERRED_CLASS = f"{_ADMIN}.PreferredReplicaLeaderElectionCommand"
ELECTION = "leader-election"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    folder = Path(options.folder)
    found = scripts()
    foreign = [name for name in found if not is_ours(folder / name)]
    if foreign:
        raise CommandFailed(f"{folder / foreign[0]} is there and was not written by this command; nothing is written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            write(folder / name, text)
    except OSError as wrong:
        raise UsageError(f"cannot write to {folder}: {wrong.strerror or wrong}") from None
    print(f"wrote {len(found)} scripts; to use them: export PATH={shlex.quote(str(folder.resolve()))}:$PATH")
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau shell-scripts",
        description="Write scripts with the names of Apache Kafka's that run our tools.",
        epilog=EXAMPLES,
    )
    parser.add_argument("folder", metavar="DIR", help="where to; it is made if it is missing")
    return parser.parse_args(arguments)


def is_ours(path: Path) -> bool:
    """Also one that is not there."""
    try:
        return MARK in path.read_text(encoding="utf-8", errors="replace").splitlines()[:3]
    except FileNotFoundError:
        return True
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None


def write(path: Path, text: str) -> None:
    """Complete or not at all: somebody may be running it."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.chmod(PERMISSIONS)
    os.replace(beside, path)


def kafka_tools() -> list[str]:
    return sorted(name for name, tool in TOOLS.items() if tool.kafka is not None)


def scripts() -> dict[str, str]:
    """The text of each by its name."""
    found = {}
    for name in kafka_tools():
        for each in (name, *(old for old, new in ALIASES.items() if new == name)):
            found[f"kafka-{each}.sh"] = _script(f'exec {_command(each)} "$@"')
    if ELECTION in kafka_tools():
        found[f"kafka-{PREFERRED}.sh"] = _script(_preferred())
    found["kafka-run-class.sh"] = _script("\n".join(_run_class()))
    return found


def _script(body: str) -> str:
    return f"#!/bin/sh\n{MARK}\n{body}\n"


def _command(name: str) -> str:
    """By the script's name, for its own help."""
    return f"{shlex.quote(sys.executable)} -m moldau kafka-{name}.sh"


def _preferred() -> str:
    return "\n".join(
        [
            'case " $* " in',
            '  *" --path-to-json-file"*|*" --help "*) ;;',
            '  *) set -- --all-topic-partitions "$@" ;;',
            "esac",
            f'exec {_command(ELECTION)} --election-type preferred "$@"',
        ]
    )


def _run_class() -> Iterator[str]:
    """Words before the class are for a JVM, except -daemon."""
    yield "daemon="
    yield "while [ $# -gt 0 ]; do"
    yield '  case "$1" in'
    yield "    -name) shift; [ $# -gt 0 ] && shift ;;"
    yield "    -loggc) shift ;;"
    yield "    -daemon) daemon=yes; shift ;;"
    yield "    *) break ;;"
    yield "  esac"
    yield "done"
    yield 'if [ $# -eq 0 ]; then echo "USAGE: $0 [-daemon] classname [opts]" >&2; exit 1; fi'
    yield "class=$1; shift"
    yield 'case "$class" in'
    for name in kafka_tools():
        if name in CLASSES:
            yield f"  {'|'.join(CLASSES[name])}) tool={name} ;;"
    if ELECTION in kafka_tools():
        yield f'  {PREFERRED_CLASS}) exec "$(dirname "$0")/kafka-{PREFERRED}.sh" "$@" ;;'
    yield '  *) echo "moldau has no tool for the class $class; see: moldau help" >&2; exit 1 ;;'
    yield "esac"
    command = f'{_command("$tool")} "$@"'
    yield f'if [ -n "$daemon" ]; then nohup {command} </dev/null >/dev/null 2>&1 &'
    yield f"else exec {command}; fi"
