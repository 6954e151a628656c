"""The same words for Apache Kafka's tool and for ours, against one cluster, and what both printed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType

from tests.cli.conftest import run_tool
from tests.suites.tools import CLIENT_METRICS, CONFIGS, DELETE_RECORDS, GET_OFFSETS, TOPICS, Tools

CLASSES = MappingProxyType(
    {
        "topics": TOPICS,
        "configs": CONFIGS,
        "client-metrics": CLIENT_METRICS,
        "get-offsets": GET_OFFSETS,
        "delete-records": DELETE_RECORDS,
    }
)
TOPIC_ID = re.compile(r"TopicId: [\w-]{22}")
HINT = re.compile(r"; see: moldau [\w-]+ --help$")


def told_by_kafka(tools: Tools, name: str, line: str) -> tuple[bool, list[str], str]:
    """Whether it was done, the lines on standard output, and everything that may hold what went wrong."""
    done = tools.run(CLASSES[name], *words(line))
    lines = [each for each in done.out.splitlines() if not each.startswith("Error while executing")]
    return done.exit_code == 0, lines, done.out + done.err


def told_by_us(tools: Tools, name: str, line: str) -> tuple[bool, list[str], str]:
    done = run_tool(tools.bootstrap, name, *words(line))
    message = HINT.sub("", done.stderr.rstrip("\n").removeprefix(f"moldau {name}: "))
    return done.returncode == 0, done.stdout.splitlines(), message


def words(line: str) -> list[str]:
    """Values with spaces are not asked for here."""
    return line.split()


def normal(lines: Iterable[str], name: str) -> list[str]:
    """Sorted, for several topics stand in the order of their names' hashes."""
    return sorted(TOPIC_ID.sub("TopicId: ID", line).replace(name, "TOPIC") for line in lines)


def check_session(tools: Tools, tool: str, session: str, *, topics: tuple[str, str]) -> None:
    """Both go through it, each with a topic of its own, and print the same after each command.

    A failure of ours is one line, whose text is somewhere in what Apache Kafka's tool tells of the same failure.
    """
    theirs, ours = topics
    for line in session.strip().splitlines():
        done, lines, told = told_by_kafka(tools, tool, line.format(topic=theirs))
        is_done, our_lines, message = told_by_us(tools, tool, line.format(topic=ours))
        expected, printed = normal(lines, theirs), normal(our_lines, ours)
        assert (is_done, printed) == (done, expected), f"{line}: {printed} {message!r} instead of {expected} {told!r}"
        if not done:
            assert message.replace(ours, "TOPIC") in told.replace(theirs, "TOPIC"), line
            assert "\n" not in message, line
