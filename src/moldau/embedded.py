"""A broker from Python: `with moldau.run() as broker:` starts one in a process of its own, on a free port."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

START_S_MAX = 30.0  # a start takes a fraction of a second; recovery after a crash, or a busy machine, takes longer
STOP_S_MAX = 10.0
UNSPECIFIED_HOSTS = ("", "0.0.0.0", "::")


class BrokerFailed(Exception):
    """The broker did not start; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def run(
    *,
    overrides: Mapping[str, object] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    properties: str | os.PathLike[str] | None = None,
    timeout_s: float = START_S_MAX,
) -> EmbeddedBroker:
    """Start a broker and return once it answers clients; leaving the `with` block, or `stop()`, ends it.

    `overrides` holds Kafka's keys, such as `{"num.partitions": 3}`; `properties` is a server.properties file. Without
    `data_dir` the data lies in a temporary folder and goes with the broker; a folder that is given is kept.
    """
    scratch = Path(tempfile.mkdtemp(prefix="moldau-"))
    data = scratch / "data" if data_dir is None else Path(data_dir)
    command = [sys.executable, "-P", "-m", "moldau", "start"]
    if properties is not None:
        command.append(os.fspath(properties))
    command += ["--host", host, "--port", str(port), "--data-dir", os.fspath(data)]
    # KAFKA_* in the user's shell is for clients, or for another broker: a test must not depend on it.
    command += ["--no-kafka-environment", "--stop-with-stdin", "--scratch", os.fspath(scratch)]
    for key, value in (overrides or {}).items():
        command += ["--override", f"{key}={as_property(value)}"]
    try:
        process, addresses = launch(command, output=scratch / "output.txt", timeout_s=timeout_s)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return EmbeddedBroker(process, addresses=addresses, data_dir=data, scratch=scratch)


class EmbeddedBroker:
    """A running broker; it ends when the process that started it ends, however that happens."""

    def __init__(
        self, process: subprocess.Popen[bytes], *, addresses: Mapping[str, Address], data_dir: Path, scratch: Path
    ) -> None:
        self.addresses = addresses
        self.data_dir = data_dir
        self._process = process
        self._scratch = scratch

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`: the first listener."""
        return str(self._first)

    @property
    def host(self) -> str:
        return self._first.host

    @property
    def port(self) -> int:
        return self._first.port

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _first(self) -> Address:
        return next(iter(self.addresses.values()))

    def output(self) -> str:
        """What the broker has printed so far."""
        return read_output(self._scratch / "output.txt")

    def stop(self) -> None:
        """End the broker as SIGTERM does, its data flushed; a second call does nothing."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker at once, as kill -9 and a crash do; a `data_dir` that was given can be started again."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        end_process(self._process, how)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"EmbeddedBroker({self.bootstrap_servers}, pid={self.pid}, data_dir={str(self.data_dir)!r})"


def launch(command: list[str], *, output: Path, timeout_s: float) -> tuple[subprocess.Popen[bytes], dict[str, Address]]:
    """The process and its addresses, once it has said through a pipe that clients are answered."""
    ready, told = os.pipe()
    with os.fdopen(ready, "rb") as answer:
        try:
            with output.open("wb") as printed:
                process = subprocess.Popen(
                    [*command, "--ready-fd", str(told)],
                    # The broker reads its end of this pipe: it closes when we die, and so does the broker.
                    stdin=subprocess.PIPE,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    pass_fds=(told,),
                    # Ctrl-C in a terminal goes to the whole group; the broker has to outlive the tests' own clean-up.
                    start_new_session=True,
                )
        finally:
            os.close(told)
        try:
            return process, await_ready(answer.fileno(), process, output=output, timeout_s=timeout_s)
        except BaseException:
            end_process(process, signal.SIGKILL)
            raise


def await_ready(
    ready_fd: int, process: subprocess.Popen[bytes], *, output: Path, timeout_s: float
) -> dict[str, Address]:
    poll = select.poll()
    poll.register(ready_fd, select.POLLIN)
    deadline_s = time.monotonic() + timeout_s
    line = b""
    while not line.endswith(b"\n"):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1_000):
            raise BrokerFailed(f"the broker did not answer within {timeout_s:g} s:\n{read_output(output)}")
        chunk = os.read(ready_fd, 65_536)
        if not chunk:
            exit_code = process.wait()
            raise BrokerFailed(f"the broker ended with exit code {exit_code}:\n{read_output(output)}")
        line += chunk
    listeners: dict[str, tuple[str, int]] = json.loads(line)["listeners"]
    return {name: reachable(host, port) for name, (host, port) in listeners.items()}


def reachable(host: str, port: int) -> Address:
    """A broker that listens on every interface is reached on this machine's own."""
    return Address("127.0.0.1" if host in UNSPECIFIED_HOSTS else host, port)


def end_process(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    process.send_signal(how)
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def read_output(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except FileNotFoundError:
        return ""


def as_property(value: object) -> str:
    """A value as a properties file spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
