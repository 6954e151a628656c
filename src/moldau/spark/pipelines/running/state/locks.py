"""Who runs a pipeline, noted beside its checkpoint, so that whoever would run it too is refused, on any machine.

A lock is a file `lock-N`, created exclusively, and the highest N counts. Taking over from a holder that is gone creates
the next number: of several that try at once one succeeds, and nothing is ever deleted under a new holder. The holder
writes its file anew every few seconds. A holder of this machine is gone when its process is; any other when its file
did not change for the length of a lease, watched here: clocks of two machines are compared only to save that wait.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from moldau.core.clock import Clock, SystemClock
from moldau.spark.storage import Folder

RENEW_S = 5.0
LEASE_S = 30.0
LONG_AGO_S = 600.0  # no two clocks of a cluster are this far apart: such a file needs no watching
LOCK = re.compile(r"lock-(\d{8})")
STOP = "stop"
NOT_SEEN = "not seen"


class AlreadyRunning(Exception):
    """Somebody else runs this pipeline."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A run of a pipeline: `token` is the run's own, `machine` and `born` tell a process from its successors."""

    token: str
    host: str
    pid: int
    machine: str
    born: str
    renewed_ms: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.token else "somebody whose lock can't be read"

    @property
    def is_of_this_machine(self) -> bool:
        return self.machine == this_machine()

    @property
    def is_seen(self) -> bool:
        """Whether it can be told from here that its process is gone: some hosts show nobody another user's."""
        return self.is_of_this_machine and born(self.pid) != NOT_SEEN

    def is_alive(self, now_ms: int) -> bool:
        """As far as it can be told without watching."""
        if self.is_seen:
            return born(self.pid) == self.born
        return abs(now_ms - self.renewed_ms) < LEASE_S * 1000


UNREADABLE = Holder(token="", host="", pid=0, machine="", born="", renewed_ms=0)


class Numbered(NamedTuple):
    number: int
    holder: Holder


@lru_cache(maxsize=1)
def this_machine() -> str:
    """A container that has a neighbour's host name has process ids of its own."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{booted} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def born(pid: int) -> str | None:
    """When a process began, in the kernel's own count, where it tells; None when there is no such process."""
    try:
        # The name of the program stands in brackets and may hold anything, so count from its end.
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # The dead whom nobody asks for stay listed: the first process of a container often asks for no orphans.
        return None if told[0] in "ZX" else told[19]
    except OSError:
        try:
            os.kill(pid, 0)
        except PermissionError:
            return NOT_SEEN
        except OSError:
            return None
        return "alive"


def newest_lock(folder: Folder) -> Numbered | None:
    for name in sorted(filter(LOCK.fullmatch, folder.names()), reverse=True):
        text = folder.read(name)
        if text is not None:
            return Numbered(int(name.removeprefix("lock-")), _holder(text))
    return None


def _holder(text: bytes) -> Holder:
    """In some stores a file is there before its text is, and whoever was to write it may have died in between."""
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return UNREADABLE


def ask_to_end(folder: Folder, holder: Holder) -> None:
    """A process of this machine hears a signal; any other looks for this file when it renews its lock."""
    if holder.is_seen:
        if not holder.is_alive(0):
            return
        with suppress(PermissionError):  # another user's, which looks for the file as well
            with suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGTERM)
            return
    folder.write(STOP, holder.token.encode())


class Lock:
    """Taken by `take`, kept by a thread until `release`."""

    def __init__(
        self, folder: Folder, *, clock: Clock | None = None, lease_s: float = LEASE_S, is_patient: bool = False
    ) -> None:
        """A patient one watches a holder of another machine until it is known to live or to be dead."""
        self.lost_to: str | None = None
        self.is_asked_to_end = False
        self._folder = folder
        self._clock = clock or SystemClock()
        self._lease_s = lease_s
        self._is_patient = is_patient
        self._over = threading.Event()
        self._number = 0
        self._me = Holder(
            token=uuid.uuid4().hex,
            host=socket.gethostname(),
            pid=os.getpid(),
            machine=this_machine(),
            born=born(os.getpid()) or "",
            renewed_ms=self._clock.now_ms(),
        )
        self._keeper = threading.Thread(target=self._keep, name="pipeline lock", daemon=True)

    def take(self) -> None:
        """Raises AlreadyRunning, with the holder's name."""
        while True:
            found = newest_lock(self._folder)
            if found is not None:
                self._outlive(found)
            self._number = found.number + 1 if found is not None else 1
            if self._folder.create(self._name(self._number), self._note()):
                if self._is_mine():
                    break
                # Somebody succeeded a dead holder between two of our looks, and has the higher number.
                self._folder.delete(self._name(self._number))
        for name in filter(LOCK.fullmatch, self._folder.names()):
            if name < self._name(self._number):
                self._folder.delete(name)
        self._folder.delete(STOP)
        self._keeper.start()

    def release(self) -> None:
        self._over.set()
        self._keeper.join()
        with suppress(OSError):  # a store that is out of reach forgets the lock with its lease
            if self._is_mine():
                self._folder.delete(self._name(self._number))

    def renew(self) -> None:
        """Whoever finds another's lock has lost its own, and writes nothing any more."""
        if not self._is_mine():
            found = newest_lock(self._folder)
            self.lost_to = str(found.holder) if found else "somebody who has ended since"
            return
        self._folder.write(self._name(self._number), self._note())
        stop = self._folder.read(STOP) if STOP in self._folder.names() else None
        self.is_asked_to_end = stop == self._me.token.encode()

    def _keep(self) -> None:
        while self.lost_to is None and not self._over.wait(min(RENEW_S, self._lease_s / 3)):
            # A store that does not answer for a while takes the lock from nobody: the next look tells.
            with suppress(OSError):
                self.renew()

    def _is_mine(self) -> bool:
        found = newest_lock(self._folder)
        return found is not None and (found.number, found.holder.token) == (self._number, self._me.token)

    def _outlive(self, found: Numbered) -> None:
        """Returns when the holder is gone."""
        holder, now_ms = found.holder, self._clock.now_ms()
        if holder.is_seen:
            if holder.is_alive(now_ms):
                raise AlreadyRunning(f"{holder} runs this pipeline already")
            return
        age_s = abs(now_ms - holder.renewed_ms) / 1000
        if age_s < self._lease_s and not self._is_patient:
            left = f"if it is dead, its lock ends in {self._lease_s - age_s:.0f} s"
            raise AlreadyRunning(f"{holder} runs this pipeline already ({age_s:.0f} s ago it said so; {left})")
        if age_s > LONG_AGO_S and holder != UNREADABLE:
            return
        deadline_s = time.monotonic() + self._lease_s
        while time.monotonic() < deadline_s:
            time.sleep(min(1.0, self._lease_s / 10))
            seen = newest_lock(self._folder)
            if seen is None:
                return
            if seen != found:
                raise AlreadyRunning(f"{seen.holder} runs this pipeline already")

    def _note(self) -> bytes:
        return json.dumps(asdict(replace(self._me, renewed_ms=self._clock.now_ms()))).encode()

    def _name(self, number: int) -> str:
        return f"lock-{number:08d}"
