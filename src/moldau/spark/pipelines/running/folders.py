"""Where a pipeline keeps what outlives it: checkpoints, its status, and the lock of the one who runs it."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.holder import Holder, holder_from, this_process

HOME = ".moldau"
AGAIN = "~"  # between a sink's name and the number of its checkpoint, from the second on


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
                raise AlreadyRunning(f"{self.holder() or 'another process'} runs this pipeline already") from None
            (self.state / "holder").write_text(this_process().as_json())
            try:
                yield
            finally:
                (self.state / "holder").unlink(missing_ok=True)

    def holder(self) -> Holder | None:
        """The process that holds the lock, if there is one."""
        with suppress(OSError), (self.state / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return holder_from((self.state / "holder").read_text())
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

    def checkpoint_of(self, sink: str, *, anew: bool = False) -> Path:
        """Where its progress is. One that begins anew, in a replay, leaves the old progress until it has some itself.

        So a replay that comes to nothing changes nothing: the newest checkpoint with a finished batch is the sink's.
        """
        there = self._numbered(sink)
        if anew:
            return self._checkpoint(sink, max(there, default=0) + 1)
        return self._checkpoint(sink, max(filter(lambda one: has_batch(there[one]), there), default=min(there or [1])))

    def keep_only(self, sink: str, checkpoint: Path) -> None:
        """The others of the sink have done their service."""
        for path in self._numbered(sink).values():
            if path != checkpoint:
                shutil.rmtree(path)

    def sinks_with_progress(self) -> list[str]:
        return sorted({path.name.partition(AGAIN)[0] for path in self.checkpoints.glob("*") if path.is_dir()})

    def forget_progress(self, sinks: list[str] | None = None) -> list[str]:
        """Remove checkpoints; the names of the sinks that had one."""
        gone = [name for name in self.sinks_with_progress() if sinks is None or name in sinks]
        for name in gone:
            for path in self._numbered(name).values():
                shutil.rmtree(path)
        return gone

    def _checkpoint(self, sink: str, number: int) -> Path:
        return self.checkpoints / (sink if number == 1 else f"{sink}{AGAIN}{number}")

    def _numbered(self, sink: str) -> dict[int, Path]:
        """The sink's checkpoints by their numbers, the first of which is not written."""
        found = {int(path.name.rpartition(AGAIN)[2]): path for path in self.checkpoints.glob(f"{sink}{AGAIN}[0-9]*")}
        first = self.checkpoints / sink
        return {1: first, **found} if first.is_dir() else found


def has_batch(checkpoint: Path) -> bool:
    """Whether a batch of it is finished."""
    return any(path.name.isdigit() for path in (checkpoint / "commits").glob("*"))
