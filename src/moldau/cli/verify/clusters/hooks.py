"""What only somebody with hands on the brokers can do: commands that the user names, or the user at the terminal."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.cli.failures import UsageError
from moldau.cli.questions import is_terminal
from moldau.cli.verify.outcome import Skipped, Wrong

HOOK_S_MAX = 300.0  # a broker that recovers its logs behind ssh takes minutes, and one that takes more is no help here
STOP, START, RESTART, PAUSE, RESUME, SLOW, HEAL = ACTIONS = (
    "stop-broker", "start-broker", "restart-broker", "pause-broker", "resume-broker", "slow-disk", "heal-disk",
)  # fmt: skip
ASKED: Mapping[str, str] = {
    STOP: "stop broker {id} at once, as kill -9 does",
    START: "start broker {id} again",
    RESTART: "restart broker {id} cleanly",
    PAUSE: "pause broker {id} (kill -STOP)",
    RESUME: "let broker {id} go on (kill -CONT)",
    SLOW: "make the disk of broker {id} slow",
    HEAL: "make the disk of broker {id} fast again",
}
PLACE = "{id}"


@dataclass(frozen=True, slots=True)
class Hooks:
    commands: Mapping[str, str]

    def need(self, *actions: str) -> None:
        missing = [f"--{each}" for each in actions if each not in self.commands and not is_terminal()]
        if missing:
            raise Skipped(f"needs {' and '.join(missing)}, or a terminal to ask at")

    def do(self, action: str, broker: int) -> None:
        """Returns when it is done."""
        command = self.commands.get(action)
        if command is None:
            self._ask(action, broker)
            return
        # A file and no pipe: a broker that the command leaves behind has its output, too, and a pipe ends with it.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            try:
                done = subprocess.run(
                    command.replace(PLACE, str(broker)), shell=True, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, timeout=HOOK_S_MAX, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise Wrong(f"--{action} did not end within {HOOK_S_MAX:g} s for broker {broker}") from None
            output.seek(0)
            said = [] if done.returncode == 0 else output.read().strip().splitlines()
        if done.returncode != 0:
            raise Wrong(f"--{action} ended with {done.returncode} for broker {broker}{': ' + said[-1] if said else ''}")

    def _ask(self, action: str, broker: int) -> None:
        self.need(action)
        what = ASKED[action].replace(PLACE, str(broker))
        print(f"\nPlease {what}, then press Enter. ", end="", file=sys.stderr, flush=True)
        if not sys.stdin.readline():
            raise Wrong(f"nobody said that it was done: {what}")


def checked(commands: Mapping[str, str | None]) -> Hooks:
    for action, command in commands.items():
        if command is None:
            continue
        if PLACE not in command:
            raise UsageError(f"--{action} {shlex.quote(command)}: expected a command with {PLACE} in it")
    return Hooks({action: command for action, command in commands.items() if command is not None})
