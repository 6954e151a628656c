"""A cluster whose brokers are killed, stopped and started by a command, as a user's ssh does: for --stop-broker & Co.

python -m tests.cli.verify.controlling SOCKET ACTION ID
"""

from __future__ import annotations

import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Actions = Mapping[str, Callable[[int], None]]
OPTIONS = {
    "stop-broker": "kill", "start-broker": "start", "restart-broker": "restart", "pause-broker": "pause",
    "resume-broker": "resume",
}  # fmt: skip
ANSWER_S_MAX = 290.0


@contextmanager
def controlled(folder: Path, actions: Actions) -> Iterator[list[str]]:
    """Options of `moldau verify` with commands for these actions."""
    path = folder / "control"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        threading.Thread(target=_serve, args=[listening, actions], daemon=True).start()
        yield [
            word
            for option, action in OPTIONS.items()
            if action in actions
            for word in (
                f"--{option}",
                shlex.join([sys.executable, "-m", "tests.cli.verify.controlling", str(path), action]) + " {id}",
            )
        ]


def _serve(listening: socket.socket, actions: Actions) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            action, broker = connection.recv(100).decode().split()
            try:
                actions[action](int(broker))
            except Exception as wrong:
                connection.sendall(repr(wrong).encode())
            else:
                connection.sendall(b"done")


def main(path: str, action: str, broker: str) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S_MAX)
        connection.connect(path)
        connection.sendall(f"{action} {broker}".encode())
        said = connection.recv(10_000).decode()
    print(said, file=sys.stderr)
    return int(said != "done")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
