"""Queries that stay: each is a pipeline's file in a folder of ours, run by a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.language.tokens import statements_of
from moldau.spark.pipelines.running.folders import PipelineFolder

HOME_VARIABLE = "MOLDAU_HOME"
START_S_MAX = 120.0
STOP_S_MAX = 60.0


def home() -> Path:
    """The folder of what belongs to a user and not to a pipeline's file."""
    return Path(os.environ.get(HOME_VARIABLE, Path.home() / ".moldau"))


class StreamFailed(Exception):
    """It did not start or stop; the message says why."""


class Stream(NamedTuple):
    name: str
    state: str
    rows: int
    query: str


class StayingStreams:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or home() / "streams"

    def create(self, name: str, source: str, *, master: str | None) -> None:
        """Returns when its first batch has begun, or raises StreamFailed."""
        path = self._folder / f"{name}.sql"
        if path.exists():
            raise StreamFailed(f"there is a stream {name} already; end it with: drop stream {name}")
        self._folder.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        try:
            self._start(path, master)
        except StreamFailed:
            path.unlink()
            raise

    def _start(self, path: Path, master: str | None) -> None:
        command = [sys.executable, "-m", "moldau", "pipeline", "run", str(path)]
        log = path.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *(["--master", master] if master else [])],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        folder, begun = self._pipeline(path), time.monotonic()
        begun_ms = SystemClock().now_ms()
        while True:
            told = folder.read_status()
            queries = told["queries"].values() if told and told["updated_ms"] >= begun_ms else ()
            failed = [one["reason"] for one in queries if one["reason"]]
            if queries and not failed:
                return
            if failed or process.poll() is not None or time.monotonic() - begun > START_S_MAX:
                process.terminate()
                raise StreamFailed(failed[0] if failed else _last_line(log))
            time.sleep(0.1)

    def drop(self, name: str) -> None:
        """End it and forget how far it came; its topic stays."""
        path = self._folder / f"{name}.sql"
        if not path.exists():
            raise StreamFailed(f"there is no stream {name}")
        folder = self._pipeline(path)
        pid = folder.running_pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S_MAX
        while folder.running_pid() is not None:
            if time.monotonic() > deadline:
                raise StreamFailed(f"process {pid} did not end within {STOP_S_MAX:.0f} s")
            time.sleep(0.1)
        folder.forget_progress()
        path.unlink()

    def all(self) -> Iterator[Stream]:
        for path in sorted(self._folder.glob("*.sql")):
            folder = self._pipeline(path)
            told = folder.read_status() or {"queries": {}}
            one: dict[str, Any] = next(iter(told["queries"].values()), {})
            state = one.get("state", "starting") if folder.running_pid() is not None else "not running"
            yield Stream(path.stem, state, one.get("rows", 0), _last_statement(path.read_text()))

    def _pipeline(self, path: Path) -> PipelineFolder:
        return PipelineFolder(parse(path.read_text(), path.name, name=path.stem), path.parent)


def _last_statement(source: str) -> str:
    """The one that the user said, on one line; the ones before it say where things are."""
    *_, last = statements_of(source, "")
    return " ".join(source[last.tokens[0].start : last.tokens[-1].end].split())


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it ended without a word"
