"""One client in a process of its own, and what it says."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

STOP_S_MAX = 30.0  # a client that was asked to end commits and leaves its group first
ERRORS_MAX = 20  # lines of what a client complained of
Hear = Callable[[dict[str, Any], float], None]


class ClientProcess:
    """`hear` gets each event with the time when it came, in a thread of its own."""

    def __init__(self, kind: str, arguments: list[str], settings: Mapping[str, str], hear: Hear) -> None:
        self._hear = hear
        self._errors: deque[str] = deque(maxlen=ERRORS_MAX)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "moldau.cli.verify.clients.child", kind, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C in a terminal goes to the whole group; whoever started it decides when a client ends.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # whoever waits for it hears that it ended
            self._process.stdin.write(json.dumps(dict(settings)) + "\n")
            self._process.stdin.flush()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._listen, self._complain)]
        for each in self._threads:
            each.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def complaint(self) -> str:
        return "; ".join(self._errors) or f"it ended with exit code {self._process.poll()}"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # the end of a line that was cut off by a kill
                self._hear(json.loads(line), time.monotonic())

    def _complain(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.strip())

    def ask_to_stop(self) -> None:
        if self.is_running:
            self._process.terminate()

    def stop(self, timeout_s: float = STOP_S_MAX) -> bool:
        """As SIGTERM does. Gives whether it ended by itself; what it said until then has been heard."""
        self.ask_to_stop()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._close()
        return True

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        for each in self._threads:
            each.join(STOP_S_MAX)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
