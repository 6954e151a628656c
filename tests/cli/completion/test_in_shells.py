"""Tab in real shells: bash, zsh and fish in a terminal, with a broker behind them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import run_tool
from tests.cli.terminal import Terminal
from tests.debian import install

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

Done = Callable[..., str]
ODD_GROUP = "my group's $x"
SHELLS = {
    "bash": ("bash", "--noprofile", "--norc", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config"),
}
SETUP = {
    "bash": "PS1='> '; bind 'set bell-style none'; bind 'set completion-query-items 0'",
    "zsh": "PS1='> '; unsetopt beep; autoload -Uz compinit; compinit -u -D",
    "fish": "function fish_prompt; echo -n '> '; end; set -g fish_autosuggestion_enabled 0",
}
LOADED = {shell: f'eval "$(moldau completion {shell})"' for shell in ("bash", "zsh")} | {
    "fish": "moldau completion fish | source"
}


def require(shell: str) -> None:
    """Debian's packages, where root may install them; else the test is skipped."""
    if not install(shell, is_there=lambda: shutil.which(shell) is not None):
        pytest.skip(f"needs {shell}, or apt-get to fetch it")


@pytest.fixture(scope="module", params=[*SHELLS])
def shell(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    require(found)
    return found


@pytest.fixture(scope="module")
def names(bootstrap: str) -> str:
    """The beginning of the names of two topics; a group is named oddly."""
    begun = f"tab{os.getpid()}"
    for line in (["topics", "create", f"{begun}-orders"], ["topics", "create", f"{begun}-orders-eu"]):
        assert run_tool(bootstrap, *line).returncode == 0
    plan = ["groups", "reset", ODD_GROUP, "--topic", f"{begun}-orders", "--to", "earliest", "--yes"]
    assert run_tool(bootstrap, *plan).returncode == 0
    return begun


@pytest.fixture(scope="module")
def terminal(shell: str, bootstrap: str, names: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    home = tmp_path_factory.mktemp(shell)
    (home / "bin").mkdir()
    script = home / "bin" / "moldau"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m moldau "$@"\n')
    script.chmod(0o755)
    (home / "records-in-a-file.txt").write_text("")
    variables = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config")}
    variables["PATH"] = f"{home / 'bin'}:{os.environ['PATH']}"
    opened = Terminal(bootstrap, shell=SHELLS[shell], variables=variables)
    try:
        opened.type(SETUP[shell])
        opened.type(f"cd {shlex.quote(str(home))}")
        opened.type(LOADED[shell])
        opened.type("echo it is loaded")
        opened.wait_for("it is loaded")
        yield opened
    finally:
        opened.close()


def completed(terminal: Terminal, line: str, *, becomes: str) -> None:
    """What stands at the prompt after one Tab."""
    terminal.press("C-u")
    terminal.press("C-l")
    terminal.wait(lambda: [each for each in terminal.lines if each] == [">"])
    terminal.type_on(line)
    terminal.press("Tab")
    terminal.wait(lambda: f"> {becomes}" in terminal.lines)


def test_commands_actions_and_options(terminal: Terminal) -> None:
    completed(terminal, "moldau topi", becomes="moldau topics")
    completed(terminal, "moldau topics desc", becomes="moldau topics describe")
    completed(terminal, "moldau topics list --inte", becomes="moldau topics list --internal")
    completed(terminal, "moldau kafka-consumer-gr", becomes="moldau kafka-consumer-groups.sh")
    completed(terminal, "moldau help reass", becomes="moldau help reassign-partitions")


def test_fixed_values_and_configs(terminal: Terminal) -> None:
    completed(terminal, "moldau produce x -z zs", becomes="moldau produce x -z zstd")
    completed(terminal, "moldau topics list -o ya", becomes="moldau topics list -o yaml")
    completed(terminal, "moldau topics list --output=ya", becomes="moldau topics list --output=yaml")
    completed(terminal, "moldau topics create x -c retention.m", becomes="moldau topics create x -c retention.ms=")


def test_what_the_cluster_has(terminal: Terminal, names: str) -> None:
    completed(terminal, f"moldau topics describe {names[:-1]}", becomes=f"moldau topics describe {names}-orders")
    completed(terminal, f"moldau configs --topic {names}-orders-", becomes=f"moldau configs --topic {names}-orders-eu")
    completed(
        terminal, f"kafka-topics.sh --topic a,{names}-orders-", becomes=f"kafka-topics.sh --topic a,{names}-orders-eu"
    )


def test_a_name_with_odd_characters_is_written_as_the_shell_needs_it(terminal: Terminal) -> None:
    completed(terminal, "moldau groups describe my", becomes=r"moldau groups describe my\ group\'s\ \$x")


def test_files(terminal: Terminal) -> None:
    completed(terminal, "moldau produce x -F records-", becomes="moldau produce x -F records-in-a-file.txt")


def test_nothing_is_said_where_nobody_answers(terminal: Terminal) -> None:
    completed(
        terminal, "moldau topics describe -b localhost:1 tab", becomes="moldau topics describe -b localhost:1 tab"
    )
    terminal.type_on("le")
    terminal.wait(
        lambda: [each for each in terminal.lines if each] == ["> moldau topics describe -b localhost:1 table"]
    )
