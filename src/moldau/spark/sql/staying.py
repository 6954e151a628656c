"""Queries that stay: each is a pipeline's file in a folder of ours, run by a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.language.tokens import statements_of
from moldau.spark.pipelines.running.state.folders import PipelineFolder
from moldau.spark.secrets import masked

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")  # it is a file's name as well, beside its log
HOME_VARIABLE = "MOLDAU_HOME"
START_S_MAX = 120.0
STOP_S_MAX = 60.0
OWNER_ONLY, OWNER_ONLY_FOLDER = 0o600, 0o700


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

    def create(self, name: str, source: str, *, master: str | None, secrets: Mapping[str, str] | None = None) -> None:
        """Returns when its first batch has begun, or raises StreamFailed.

        `secrets` are variables that the source refers to: the process gets them, and no file does.
        """
        if not NAME.fullmatch(name):
            raise StreamFailed(f"stream {name!r}: allowed are letters, digits, '.', '_' and '-', as in a topic's name")
        path = self._folder / f"{name}.sql"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(OWNER_ONLY_FOLDER)  # a statement may have passwords in its options
        try:
            with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY), "w") as file:
                file.write(source)
        except FileExistsError:
            raise StreamFailed(f"there is a stream {name} already; end it with: drop stream {name}") from None
        try:
            self._start(path, master, secrets or {})
        except StreamFailed:
            folder = self._pipeline(path)
            if folder.holder() is None:
                folder.forget_progress()  # the next of this name may be another query
            path.unlink()
            raise

    def _start(self, path: Path, master: str | None, secrets: Mapping[str, str]) -> None:
        command = [sys.executable, "-P", "-m", "moldau", "pipeline", "run", str(path)]
        log = path.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *(["--master", master] if master else [])],
                env={**os.environ, **secrets},
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
                _end(process)
                raise StreamFailed(failed[0] if failed else _last_line(log))
            time.sleep(0.1)

    def drop(self, name: str) -> None:
        """End it and forget how far it came; its topic stays."""
        path = self._folder / f"{name}.sql"
        if not path.exists():
            raise StreamFailed(f"there is no stream {name}")
        folder = self._pipeline(path)
        holder = folder.holder()
        if holder is not None:
            folder.ask_to_end(holder)
        deadline = time.monotonic() + STOP_S_MAX
        while folder.holder() is not None:
            if time.monotonic() > deadline:
                raise StreamFailed(f"{holder} did not end within {STOP_S_MAX:.0f} s")
            time.sleep(0.1)
        folder.forget_progress()
        path.unlink()

    def all(self) -> Iterator[Stream]:
        for path in sorted(self._folder.glob("*.sql")):
            folder = self._pipeline(path)
            told = folder.read_status() or {"queries": {}}
            one: dict[str, Any] = next(iter(told["queries"].values()), {})
            state = one.get("state", "starting") if folder.holder() is not None else "not running"
            yield Stream(path.stem, state, one.get("rows", 0), masked(_last_statement(path.read_text())))

    def _pipeline(self, path: Path) -> PipelineFolder:
        return PipelineFolder(parse(path.read_text(), path.name, name=path.stem), path.parent)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_statement(source: str) -> str:
    """The one that the user said, on one line; the ones before it say where things are."""
    *_, last = statements_of(source, "")
    return " ".join(source[last.tokens[0].start : last.tokens[-1].end].split())


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it ended without a word"
