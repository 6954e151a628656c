"""How little a tool loads before it has read its command line: the start is most of what --help takes."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

import pytest

from moldau.cli.actions import ImportedAction
from moldau.cli.completion.answering import parser_of_tool
from moldau.cli.shell_scripts import CLASSES
from moldau.cli.tools import TOOLS
from moldau.cli.users.command import DEFAULT_ITERATIONS, MECHANISMS
from moldau.security.sasl.scram.credential import ITERATIONS_MIN, ScramMechanism

# Of none of these does a page of help need anything; each takes as long as all that it does need, or longer.
HEAVY = (
    *("asyncio", "confluent_kafka", "msgspec", "typing_extensions", "ssl", "email", "h11", "kazoo", "cryptography"),
    *("pyspark", "pyarrow", "pandas", "fastavro", "starlette", "uvicorn", "google.protobuf", "uvloop", "re2"),
    *("moldau.wire", "moldau.client.cluster", "moldau.broker", "moldau.node", "moldau.log", "moldau.store"),
    *("moldau.spark", "moldau.monitor", "moldau.embedded", "moldau.core.errors"),
)
# Beyond those of an interpreter that does nothing; argparse alone loads about 30.
MODULES_MAX = 70
# What these do is done by the standard library, and loads more of it; none of that is heavy.
MORE_MODULES = {"certs": 110, "dashboards": 90, "doctor": 100, "plan": 115, "profile": 90, "tables": 85, "verify": 130}
MORE_MODULES |= {"zookeeper-config": 90, "registry": 90, "completion": 80, "monitor": 85}
# Their modules are not split into a command line and what it does.
NOT_SPLIT = ("produce", "consume", "rest", "up")
# Named tuples of the command line.
USE_TYPING = {"acls", "configs"}
# One interpreter and a fork of it for each command line: starting one for each would take most of the time.
LISTING = """\
import os, sys
before = set(sys.modules)
for line in sys.argv[1:]:
    sys.stdout.flush()
    if os.fork():
        os.wait()
        continue
    from moldau.__main__ import run
    try:
        run(line.split())
    except SystemExit:
        pass
    print("loaded:", line.replace(" ", "+"), *(set(sys.modules) - before), flush=True)
    os._exit(0)
"""
WRONG = ("topics --lists", "acls list --nobody", "e2e-latency --topic", "sql --follows")
WITHOUT_TOOL = ("--version", "help", "--nonsense")
LIGHT = [name for name in TOOLS if name not in NOT_SPLIT]

pytestmark = pytest.mark.xdist_group("starts")


@pytest.fixture(scope="module")
def loaded() -> Mapping[str, Sequence[str]]:
    """What each command line had loaded at its end."""
    lines = [*(f"{name} --help" for name in LIGHT), *WRONG, *WITHOUT_TOOL]
    finished = subprocess.run(
        [sys.executable, "-c", LISTING, *lines], capture_output=True, text=True, check=True, timeout=250
    )
    told = (line.split()[1:] for line in finished.stdout.splitlines() if line.startswith("loaded:"))
    return {line.replace("+", " "): modules for line, *modules in told}


def heavy_of(loaded: Sequence[str]) -> list[str]:
    return [each for each in loaded if each.startswith(tuple(f"{name}." for name in HEAVY)) or each in HEAVY]


@pytest.mark.parametrize("name", LIGHT)
def test_help_loads_only_what_it_needs(loaded: Mapping[str, Sequence[str]], name: str) -> None:
    found = loaded[f"{name} --help"]
    assert heavy_of(found) == []
    assert len(found) <= MORE_MODULES.get(name, MODULES_MAX)


@pytest.mark.parametrize("name", sorted({*CLASSES} - USE_TYPING))
def test_help_of_apache_kafkas_tools_loads_no_typing(loaded: Mapping[str, Sequence[str]], name: str) -> None:
    """Which takes an eighth of the time; so modules that help needs say TYPE_CHECKING = False."""
    assert "typing" not in loaded[f"{name} --help"]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_command_line_loads_only_what_it_needs(loaded: Mapping[str, Sequence[str]], arguments: str) -> None:
    assert heavy_of(loaded[arguments]) == []


@pytest.mark.parametrize("argument", WITHOUT_TOOL)
def test_without_a_tool_not_even_argparse_is_loaded(loaded: Mapping[str, Sequence[str]], argument: str) -> None:
    assert "argparse" not in loaded[argument]
    assert not [each for each in loaded[argument] if each.startswith(("moldau.client", "moldau.wire", "msgspec"))]


@pytest.mark.parametrize("name", TOOLS)
def test_every_action_is_there(name: str) -> None:
    tool = TOOLS[name]
    for module in filter(None, (tool.module, tool.kafka)):
        for action in actions_of(parser_of_tool(module)):
            assert callable(getattr(import_module(action.module), action.function)), action


def actions_of(parser: ArgumentParser) -> Iterator[ImportedAction]:
    chosen = parser.get_default("action")
    if isinstance(chosen, ImportedAction):
        yield chosen
    for each in parser._actions:
        if isinstance(each, _SubParsersAction):
            for made in each.choices.values():
                yield from actions_of(made)


def test_what_help_says_of_scram_is_what_brokers_take() -> None:
    assert tuple(each.mechanism_name for each in ScramMechanism) == MECHANISMS
    assert DEFAULT_ITERATIONS == ITERATIONS_MIN
