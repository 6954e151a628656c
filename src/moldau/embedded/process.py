"""The process of an embedded broker: started until it answers clients, ended, and started again."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

START_S_MAX = 30.0  # a start takes a fraction of a second; recovery after a crash, or a busy machine, takes longer
STOP_S_MAX = 30.0  # a broker answers requests that are under way, for 22 s at most, before it ends
UNSPECIFIED_HOSTS = ("", "0.0.0.0", "::")


class BrokerFailed(Exception):
    """The broker did not start, or does not run; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Ready(NamedTuple):
    """What a broker tells when it answers clients."""

    listeners: Mapping[str, Address]
    metrics: str | None
    """Where they are read; None where they are off."""
    servers: str = ""
    """What clients call `bootstrap.servers`: the first listener of each broker."""
    secured_by: str | None = None
    """The folder of --secure."""


class BrokerProcess:
    """One command, run as often as it is started; what it prints is collected in `scratch`."""

    def __init__(self, command: Sequence[str], *, scratch: Path) -> None:
        self.scratch = scratch
        self.listeners: Mapping[str, Address] = {}
        self.metrics: str | None = None
        self._command = command
        self._printed = scratch / "output.txt"
        self._last_output = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_pid = os.getpid()

    @property
    def pid(self) -> int:
        assert self._process is not None, "a broker is handed out after its first start"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        assert self._process is not None, "a broker is handed out after its first start"
        return self._process.poll()

    def start(self, *, timeout_s: float) -> None:
        """Returns once clients are answered; a second start listens where the first did. Raises BrokerFailed."""
        command = list(self._command)
        if self.listeners:
            bound = ",".join(f"{name}://{address}" for name, address in self.listeners.items())
            command += ["--override", f"listeners={bound}"]
        if self.metrics is not None:
            command += ["--override", f"metrics.listener={urlsplit(self.metrics).netloc}"]
        before = self._printed.stat().st_size if self._printed.exists() else 0
        ready, told = os.pipe()
        with os.fdopen(ready, "rb") as answer:
            try:
                self._process = self._launch([*command, "--ready-fd", str(told)], told)
            finally:
                os.close(told)
            try:
                answered = await_ready(answer.fileno(), timeout_s=timeout_s)
                self.listeners, self.metrics = answered.listeners, answered.metrics
            except BaseException as wrong:
                self.end(signal.SIGKILL if isinstance(wrong, TimeoutError) else signal.SIGTERM)
                if not isinstance(wrong, OSError):
                    raise
                reason = str(wrong) or f"the broker ended with exit code {self.exit_code}"
                raise BrokerFailed(f"{reason}:\n{read_output(self._printed, since=before)}") from None

    def _launch(self, command: list[str], ready_fd: int) -> subprocess.Popen[bytes]:
        with self._printed.open("ab") as printed:
            return subprocess.Popen(
                command,
                # The broker reads its end of this pipe: it closes when we die, and so does the broker.
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
                pass_fds=(ready_fd,),
                # Ctrl-C in a terminal goes to the whole group; the broker has to outlive the tests' own clean-up.
                start_new_session=True,
            )

    def end(self, how: signal.Signals) -> None:
        """Send a signal and wait for the end; does nothing when it has ended."""
        if self._process is None:
            return
        end_process(self._process, how)

    def output(self) -> str:
        """What it has printed so far, in all its runs, also after `dispose`."""
        return read_output(self._printed) or self._last_output

    def dispose(self) -> None:
        """End it and remove its scratch folder; only the process that made it may do so, not one forked from that."""
        if os.getpid() == self._owner_pid:
            self.end(signal.SIGTERM)
            self._last_output = self.output()
            shutil.rmtree(self.scratch, ignore_errors=True)


def end_process(process: subprocess.Popen[bytes], how: signal.Signals, *, timeout_s: float = STOP_S_MAX) -> None:
    """Send a signal, wait for the end, and kill what does not obey."""
    process.send_signal(how)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def await_ready(ready_fd: int, *, timeout_s: float) -> Ready:
    """Where it answers, from the line that the broker writes when it answers; raises OSError if it does not come."""
    poll = select.poll()
    poll.register(ready_fd, select.POLLIN)
    deadline_s = time.monotonic() + timeout_s
    line = b""
    while not line.endswith(b"\n"):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1_000):
            raise TimeoutError(f"the broker did not answer within {timeout_s:g} s")
        chunk = os.read(ready_fd, 65_536)
        if not chunk:
            raise ConnectionError
        line += chunk
    told = json.loads(line)
    listeners = {name: Address(host, port) for name, (host, port) in told["listeners"].items()}
    servers = ",".join(str(reachable(Address(host, port))) for host, port in told["servers"])
    return Ready(listeners, told["metrics"], servers, told["secured_by"])


def reachable(listener: Address) -> Address:
    """A broker that listens on every interface is reached on this machine's own."""
    return Address("127.0.0.1", listener.port) if listener.host in UNSPECIFIED_HOSTS else listener


def read_output(path: Path, *, since: int = 0) -> str:
    try:
        return path.read_bytes()[since:].decode(errors="replace").strip()
    except FileNotFoundError:
        return ""
