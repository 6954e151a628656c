"""Where a pipeline keeps what outlives it: checkpoints, and beside them its status and the lock of who runs it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from moldau.core.clock import SystemClock
from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.state.locks import Holder, Lock, ask_to_end, newest_lock
from moldau.spark.storage import Folder, LocalFolder, OutOfReach, StorageFailed, is_url, located

HOME = ".moldau"
STATE = "_moldau"  # in the folder of checkpoints that a pipeline names; files of such names are nobody's data
STATUS = "status.json"
AGAIN = "~"  # between a sink's name and the number of its checkpoint, from the second on
FAR_STATUS_S = 5.0  # each status at a far place is a request that somebody pays for


def only_here(url: str) -> Folder:
    if is_url(url):
        raise StorageFailed(f"{url}: only Spark can reach it")
    return LocalFolder(Path(url))


class PipelineFolder:
    def __init__(self, plan: Plan, beside: Path, reach: Callable[[str], Folder] = only_here) -> None:
        """`beside` is the folder of the pipeline's file: relative places count from there, wherever one stands.

        `reach` opens a folder by its path or URL.
        """
        self.home = beside / HOME / "pipelines" / plan.name
        self.checkpoints = located(plan.settings.get("checkpoint", str(self.home / "checkpoints")), beside).rstrip("/")
        own = f"{self.checkpoints}/{STATE}" if "checkpoint" in plan.settings else str(self.home)
        self.state = located(plan.settings.get("state", own), beside).rstrip("/")
        self.reach = reach
        self._lock: Lock | None = None
        self._status_due_s = 0.0

    @cached_property
    def log(self) -> Path:
        """Spark's own log, always of this machine: a folder that can't be written to has it elsewhere."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
        except OSError:
            return Path(tempfile.mkdtemp(prefix="moldau-")) / "spark.log"
        return self.home / "spark.log"

    @cached_property
    def _state(self) -> Folder:
        return self.reach(self.state)

    @contextmanager
    def locked(self, *, is_patient: bool = False) -> Iterator[None]:
        """A patient one is the successor that a cluster starts, within seconds, for a driver that died elsewhere."""
        lock = Lock(self._state, is_patient=is_patient)
        lock.take()
        self._lock = lock
        try:
            yield
        finally:
            self._lock = None
            lock.release()

    @property
    def lost_to(self) -> str | None:
        """Who took the lock from us, while this process was stopped or cut off."""
        return self._lock.lost_to if self._lock else None

    @property
    def is_asked_to_end(self) -> bool:
        return self._lock is not None and self._lock.is_asked_to_end

    def holder(self) -> Holder | None:
        """Who runs it, as far as one can see."""
        found = newest_lock(self._state)
        alive = found is not None and found.holder.is_alive(SystemClock().now_ms())
        return found.holder if found is not None and alive else None

    def ask_to_end(self, holder: Holder) -> None:
        ask_to_end(self._state, holder)

    def write_status(self, status: dict[str, Any], *, at_once: bool = False) -> None:
        """A far place gets it now and then, and one that is out of reach, or full, gets the next one."""
        now_s = time.monotonic()
        if self.lost_to is not None or (is_url(self.state) and now_s < self._status_due_s and not at_once):
            return
        self._status_due_s = now_s + FAR_STATUS_S
        with suppress(OSError):
            self._state.write(STATUS, json.dumps(status, indent=2).encode())

    def read_status(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._state.read(STATUS) or b"")
        except ValueError:
            return None
        return found

    def checkpoint_of(self, sink: str, *, anew: bool = False) -> str:
        """Where its progress is. One that begins anew, in a replay, leaves the old progress until it has some itself.

        So a replay that comes to nothing changes nothing: the newest checkpoint with a finished batch is the sink's.
        """
        there = self._numbered(sink)
        if anew:
            return self._checkpoint(sink, max(there, default=0) + 1)
        finished = (number for number in there if self.has_batch(self._checkpoint(sink, number)))
        return self._checkpoint(sink, max(finished, default=min(there or [1])))

    def has_batch(self, checkpoint: str) -> bool:
        """Whether a batch of it is finished."""
        return any(name.isdigit() for name in self._names(f"{checkpoint}/commits"))

    def keep_only(self, sink: str, checkpoint: str) -> None:
        """The others of the sink have done their service."""
        for number in self._numbered(sink):
            if self._checkpoint(sink, number) != checkpoint:
                self.reach(self.checkpoints).delete(_numbered_name(sink, number))

    def progress(self) -> list[str]:
        """The sinks that have a checkpoint."""
        return sorted({name.partition(AGAIN)[0] for name in self._names(self.checkpoints) if name != STATE})

    def forget_progress(self, sinks: list[str] | None = None) -> list[str]:
        """Remove checkpoints; the names of the sinks that had one."""
        gone = [name for name in self.progress() if sinks is None or name in sinks]
        checkpoints = self.reach(self.checkpoints)
        for name in gone:
            for number in self._numbered(name):
                checkpoints.delete(_numbered_name(name, number))
        return gone

    def _checkpoint(self, sink: str, number: int) -> str:
        return f"{self.checkpoints}/{_numbered_name(sink, number)}"

    def _numbered(self, sink: str) -> list[int]:
        """The numbers of the sink's checkpoints, the first of which is not written."""
        names = self._names(self.checkpoints)
        later = (name.removeprefix(sink + AGAIN) for name in names if name.startswith(sink + AGAIN))
        return [*([1] if sink in names else []), *sorted(int(number) for number in later if number.isdigit())]

    def _names(self, url: str) -> list[str]:
        try:
            return self.reach(url).names()
        except OutOfReach:  # over Connect nobody here sees them, and a checkpoint has its first name
            return []


def _numbered_name(sink: str, number: int) -> str:
    return sink if number == 1 else f"{sink}{AGAIN}{number}"
