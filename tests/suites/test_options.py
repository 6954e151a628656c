"""Every option that Apache Kafka's tools name in their help is taken by ours."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator

import pytest

from moldau.cli.completion.answering import parser_of_tool
from moldau.cli.main import VERSION
from moldau.cli.shell_scripts import CLASSES
from moldau.cli.tools import TOOLS
from tests import apache_kafka
from tests.clients.drivers import LineProcess

ACTIONS = {
    "cluster": ("cluster-id", "unregister", "list-endpoints"),
    "features": ("describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies"),
    "metadata-quorum": ("describe", "add-controller", "remove-controller"),
    "transactions": ("list", "describe", "describe-producers", "abort", "find-hanging", "forceTerminateTransaction"),
}
ASKED = [(name, action) for name in sorted(CLASSES) for action in ACTIONS.get(name, ("",))]
# These end the whole JVM, and so have one of their own.
ENDS_ALL = ("cluster", "verifiable-producer", "verifiable-consumer")
# Beginnings of lines, where both of Apache Kafka's parsers name an option, its older or shorter names before it.
DEFINED = re.compile(r"^ *(?:-\w(?: [\w-]+)?, )?(--[a-zA-Z][\w.-]*)", re.MULTILINE)
# Its help is one line about the words of old.
WITHOUT_LIST = ("e2e-latency",)


def options_of(parser: ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings


def taken(name: str, chosen: str) -> set[str]:
    module = TOOLS[name].kafka
    assert module is not None
    parser = parser_of_tool(module)
    found = {VERSION, *options_of(parser)}
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            found |= {*options_of(action.choices[chosen])}
    return found


@pytest.mark.parametrize(("name", "action"), ASKED, ids=lambda text: text or "tool")
def test_every_option_of_apache_kafkas_help(tool_process: LineProcess, name: str, action: str) -> None:
    words = [*filter(None, [action]), "--help"]
    if name in ENDS_ALL:
        ended = apache_kafka.tool(CLASSES[name][0], *words)
        told = f"{ended.stdout}\n{ended.stderr}"
    else:
        done = tool_process.ask({"class": CLASSES[name][0], "args": words, "stdin": ""})
        told = f"{done['out']}\n{done['err']}"
    known = {*DEFINED.findall(told)}
    assert known or name in WITHOUT_LIST
    assert known - taken(name, action) == set()
