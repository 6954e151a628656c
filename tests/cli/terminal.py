"""A real terminal, which tmux gives, with a shell in it."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from tests.cli.conftest import command, environment

WAIT_S_MAX = float(__import__("os").environ.get("W", "30"))
PAUSE_S = 0.05


class Terminal:
    """A shell in a window of its own; `screen` is what a person sees."""

    def __init__(
        self, bootstrap: str, *, shell: Sequence[str] = ("sh",), variables: Mapping[str, str] | None = None
    ) -> None:
        self.name = f"moldau-{uuid.uuid4().hex[:8]}"
        self.variables = {**environment(bootstrap), **(variables or {})}
        self.tmux("new-session", "-d", "-x", "200", "-y", "50", shlex.join(shell))

    def tmux(self, *words: str) -> str:
        # A server of its own: nothing is shared with what whoever runs the tests has open.
        done = subprocess.run(
            ["tmux", "-L", self.name, "-f", os.devnull, *words],
            env=self.variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def run(self, *arguments: str) -> None:
        self.type(shlex.join(command(*arguments)) + "; echo ended with $?")

    def type(self, line: str) -> None:
        self.type_on(line)
        self.press("Enter")

    def type_on(self, text: str) -> None:
        """Without a newline."""
        self.tmux("send-keys", "-l", text)

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J")

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.splitlines()]

    def wait_for(self, *lines: str) -> None:
        """Until each of them stands in a line of its own."""
        self.wait(lambda: set(lines) <= {*self.lines})

    def wait(self, is_there: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + WAIT_S_MAX
        while not is_there():
            assert time.monotonic() < deadline_s, self.screen
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self.tmux("kill-server")
