"""Where a pipeline keeps what outlives it: checkpoints, its status, and the lock of the one who runs it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moldau.spark.pipelines.plan import Plan

HOME = ".moldau"


class AlreadyRunning(Exception):
    """Somebody else runs this pipeline."""


class PipelineFolder:
    def __init__(self, plan: Plan, beside: Path) -> None:
        """`beside` is the folder of the pipeline's file: relative places count from there, wherever one stands."""
        home = beside / HOME / "pipelines" / plan.name
        self.state = beside / plan.settings["state"] if "state" in plan.settings else home
        self.checkpoints = beside / plan.settings.get("checkpoint", str(home / "checkpoints"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise AlreadyRunning(f"process {self.running_pid() or 'unknown'} runs this pipeline already") from None
            (self.state / "pid").write_text(str(os.getpid()))
            try:
                yield
            finally:
                (self.state / "pid").unlink(missing_ok=True)

    def running_pid(self) -> int | None:
        """The process that holds the lock, if there is one."""
        with suppress(OSError, ValueError), (self.state / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int((self.state / "pid").read_text())
        return None

    def write_status(self, status: dict[str, Any]) -> None:
        """A reader sees the old one or the new one, never a half."""
        fresh = self.state / "status.json.new"
        fresh.write_text(json.dumps(status, indent=2))
        fresh.replace(self.state / "status.json")

    def read_status(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.state / "status.json").read_text())
        except (OSError, ValueError):
            return None
        return found

    def forget_progress(self, sinks: list[str] | None = None) -> list[str]:
        """Remove checkpoints; the names of those that were there."""
        there = sorted(path.name for path in self.checkpoints.glob("*") if path.is_dir())
        gone = [name for name in there if sinks is None or name in sinks]
        for name in gone:
            shutil.rmtree(self.checkpoints / name)
        return gone
