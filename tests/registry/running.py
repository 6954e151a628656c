"""Registries in processes of their own, in front of a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WAIT_S_MAX = 60.0


@dataclass(slots=True)
class RunningRegistry:
    process: subprocess.Popen[bytes]
    url: str

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        return ask(self.url + path, method, body, **headers)


def ask(url: str, method: str = "GET", body: object = None, **headers: str) -> tuple[int, Any]:
    """The status and the answer; 0 if there was none."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S_MAX) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content else None
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())
    except OSError:
        return 0, None


@contextmanager
def running_registry(bootstrap: str, *arguments: str, port: int = 0) -> Iterator[RunningRegistry]:
    """In a group of its own, unless a configuration names one."""
    with tempfile.TemporaryDirectory() as folder:
        if "--config" not in arguments:
            config = Path(folder) / "registry.properties"
            config.write_text(f"schema.registry.group.id=registry-{uuid.uuid4().hex[:8]}")
            arguments = (*arguments, "--config", str(config))
        ready, log = Path(folder) / "ready.json", Path(folder) / "log"
        command = [
            *(sys.executable, "-m", "moldau", "registry", "-b", bootstrap, "--port", str(port)),
            *("--ready-file", str(ready), "--stop-with-stdin", "--log-level", "INFO", "--log-file", str(log)),
            *arguments,
        ]
        with (Path(folder) / "output").open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
        try:
            deadline_s = time.monotonic() + WAIT_S_MAX
            while not ready.exists():
                told = (Path(folder) / "output").read_text() + (log.read_text() if log.exists() else "")
                assert process.poll() is None, told
                assert time.monotonic() < deadline_s, told
                time.sleep(0.02)
            yield RunningRegistry(process, json.loads(ready.read_text())["url"])
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(WAIT_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
