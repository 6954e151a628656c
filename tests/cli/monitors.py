"""A monitor that runs as a service, and what it answers."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.cli.conftest import command, environment

READY_S_MAX = 60.0


def file_of(folder: Path, bootstrap: str, group: str, more: str = "") -> str:
    path = folder / "monitor.toml"
    path.write_text(
        f"interval = 0.5\nhistory = 'lag.sqlite'\n{more}\n"
        f"[clusters.main]\nbootstrap-server = '{bootstrap}'\ngroup-allowlist = '^{group}$'\n"
    )
    return str(path)


@dataclass(frozen=True, slots=True)
class Service:
    url: str
    process: subprocess.Popen[str]
    introduction: list[str]

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, str]:
        request = urllib.request.Request(self.url + path, body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def json(self, path: str, method: str = "GET", body: bytes | None = None) -> Any:
        """Of an answer that succeeds, without what was asked."""
        code, text = self.ask(path, method, body)
        content = json.loads(text)
        assert (code, content["error"]) == (200, False), text
        assert content.pop("request")["url"] == path
        return content

    def until(self, path: str, is_there: Callable[[Any], bool]) -> Any:
        deadline_s = time.monotonic() + READY_S_MAX
        while not is_there(found := self.json(path)):
            assert time.monotonic() < deadline_s, found
            time.sleep(0.05)
        return found


@contextmanager
def running(bootstrap: str, *arguments: str, is_ready: bool = True) -> Iterator[Service]:
    with subprocess.Popen(
        command("monitor", "--listen", "127.0.0.1:0", *arguments),
        env=environment(bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip())
                if line.startswith("answering at "):
                    break
            assert lines, process.stderr.read() if process.stderr else ""
            service = Service(lines[-1].split()[2], process, lines)
            deadline_s = time.monotonic() + READY_S_MAX
            while is_ready and service.ask("/burrow/admin/ready") != (200, "READY"):
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            yield service
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
