"""A schema registry of ours in a process, for as long as somebody needs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_S_MAX = 60.0


@contextmanager
def running_registry(bootstrap: str) -> Iterator[str]:
    """Its URL."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder, "ready.json")
        command = [
            sys.executable,
            "-m",
            "moldau",
            "registry",
            "-b",
            bootstrap,
            "--port",
            "0",
        ]
        process = subprocess.Popen(
            [*command, "--ready-file", str(ready), "--stop-with-stdin"], stdin=subprocess.PIPE, cwd=folder
        )
        try:
            deadline_s = time.monotonic() + START_S_MAX
            while not ready.exists():
                assert process.poll() is None, "the registry has ended"
                assert time.monotonic() < deadline_s, "the registry does not answer"
                time.sleep(0.05)
            yield str(json.loads(ready.read_text())["url"])
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(START_S_MAX)
