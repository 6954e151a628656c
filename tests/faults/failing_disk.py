"""A broker on a disk that fails when a test says so: `failing_disk.c`, preloaded into a broker in its own process."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_suffix(".c")
CALLS = ("any", "open", "write", "fsync", "ftruncate", "rename", "unlink", "mkdir", "sendfile", "copy_file_range")
HALF, HALF_THEN_ERROR = 1, 2
ALWAYS = -1
START_S_MAX = 60.0

_HEADER = struct.Struct("ii496s")
_RULE = struct.Struct("iiiiiiii208s")
_RULES = 16
_HITS_AT = 28


@functools.cache
def library() -> Path:
    """Compiled once for each version of the source, also where tests run side by side."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"moldau-failing-disk-{os.getuid()}-{digest}.so"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", made, SOURCE, "-ldl"], check=True)
        made.rename(path)
    return path


class FailingDisk:
    """The rules that a preloaded broker obeys, changed while it runs."""

    def __init__(self, folder: Path, *, root: Path | None = None) -> None:
        self._path = folder / "disk.rules"
        self.trace_path = folder / "disk.trace"
        self._path.write_bytes(bytes(_HEADER.size + _RULES * _RULE.size))
        with self._path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._root = str(root or folder).encode()
        self._count = 0
        self._set_header(armed=False, tracing=False)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(library()),
            "FAILING_DISK": str(self._path),
            "FAILING_DISK_TRACE": str(self.trace_path),
        }

    def fail(
        self,
        pattern: str,
        call: str = "any",
        *,
        error: int = 0,
        how: int = 0,
        delay_ms: int = 0,
        skip: int = 0,
        times: int = 1,
    ) -> int:
        """From now on; gives the rule's number. Patterns are those of the shell, over whole paths.

        A star stands for slashes, too, unless the pattern begins with "=".
        """
        number = self._count
        self._count += 1
        rule = _RULE.pack(1, CALLS.index(call), error, how, delay_ms, skip, times, 0, pattern.encode())
        start = _HEADER.size + number * _RULE.size
        self._map[start : start + _RULE.size] = rule
        self._set_header(armed=True, tracing=False)
        return number

    def hits(self, rule: int = 0) -> int:
        """How often a rule made a call fail."""
        count: int = struct.unpack_from("i", self._map, _HEADER.size + rule * _RULE.size + _HITS_AT)[0]
        return count

    def close(self) -> None:
        self._map.close()

    def heal(self) -> None:
        self._set_header(armed=False, tracing=False)
        self._map[_HEADER.size :] = bytes(_RULES * _RULE.size)
        self._count = 0

    def trace(self) -> None:
        """Note every call below the root."""
        self._set_header(armed=True, tracing=True)

    def traced(self) -> list[tuple[str, str]]:
        """Calls and paths so far, in order."""
        lines = self.trace_path.read_text().splitlines() if self.trace_path.exists() else []
        return [(call, path) for call, _, path in (line.partition(" ") for line in lines)]

    def _set_header(self, *, armed: bool, tracing: bool) -> None:
        self._map[: _HEADER.size] = _HEADER.pack(armed, tracing, self._root)


class PreloadedBroker:
    """A broker whose calls go through a failing disk; nothing of the test's process does."""

    def __init__(
        self,
        disk: FailingDisk,
        data_dirs: Iterable[Path],
        *,
        port: int = 0,
        overrides: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self._disk = disk
        descriptor, name = tempfile.mkstemp(prefix="moldau-broker-")
        os.close(descriptor)
        self._output = Path(name)
        settings = {"log.dirs": ",".join(map(str, data_dirs)), **(overrides or {})}
        flags = [part for key, value in settings.items() for part in ("--override", f"{key}={value}")]
        ready, told = os.pipe()
        command = [
            sys.executable,
            "-m",
            "moldau",
            "start",
            "--port",
            str(port),
            "--ready-fd",
            str(told),
            *flags,
            *arguments,
        ]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[told],
                env=os.environ | disk.environment, start_new_session=True,
            )  # fmt: skip
        os.close(told)
        self.bootstrap = ""
        try:
            self._await_ready(ready)
        finally:
            os.close(ready)

    def _await_ready(self, ready: int) -> None:
        """Ready, or ended: then `bootstrap` is empty."""
        poll = select.poll()
        poll.register(ready, select.POLLIN)
        if not poll.poll(START_S_MAX * 1000):
            self.kill()
            raise AssertionError(f"the broker neither started nor ended:\n{self.output()}")
        line = os.read(ready, 65_536)
        if line:
            host, port = json.loads(line)["listeners"]["PLAINTEXT"]
            self.bootstrap = f"{host}:{port}"
        else:
            self.process.wait(START_S_MAX)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def stop(self) -> int:
        """Ask it to stop; gives its exit code, also if it ended before."""
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(START_S_MAX)

    def kill(self) -> None:
        if self.is_running:
            self.process.kill()
        self.process.wait(START_S_MAX)

    def __enter__(self) -> Self:
        assert self.bootstrap, self.output()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.kill()
        self._output.unlink(missing_ok=True)


ERRORS = {name: getattr(errno, name) for name in ("EIO", "ENOSPC", "EMFILE")}
