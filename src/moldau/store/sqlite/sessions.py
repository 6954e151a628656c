"""Registrations and the elected controller, as rows of the store's file. All of it runs on the store's thread.

A session ends when its row is deleted: by its owner, or by whoever finds that its process ended or was silent for too
long. Deleting is a write, and SQLite has writes one after the other, so all brokers agree on who was alive when. A
broker whose row is there has been missed by nobody, however late its heartbeat is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.store.process import ProcessId, is_gone, is_of_another_boot
from moldau.store.sqlite.schema import transaction
from moldau.store.store import ControllerAndEpoch, Fenced, Registration, StoreError

NO_SESSION = 0
SIGN_BITS = 2  # SQLite's integers have a sign, and a random one of 62 bits may grow by 1


class EndedSession(NamedTuple):
    """A session that is over as soon as somebody writes that down."""

    session: int
    heartbeat_ms: int
    is_certain: bool  # its process is known to have ended


class Sessions:
    """`db` waits for the disk and is for elections; `pulse` does not, for a machine that stops has no brokers left."""

    def __init__(
        self,
        db: sqlite3.Connection,
        pulse: sqlite3.Connection,
        *,
        process: ProcessId,
        timeout_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._db = db
        self._pulse = pulse
        self._process = process
        self._timeout_ms = timeout_ms
        self._now_ms = now_ms

    def begin(self, registration: Registration) -> int:
        """A new session for a broker. Raises StoreError while another process has one."""
        session = 1 + (int.from_bytes(os.urandom(8)) >> SIGN_BITS)
        with transaction(self._pulse):
            row = self._pulse.execute(
                "SELECT pid, started, boot, namespace, timeout_ms, heartbeat_ms FROM registration WHERE broker_id = ?",
                (registration.broker_id,),
            ).fetchone()
            if row and ProcessId(*row[:4]) != self._process and not self._has_ended(ProcessId(*row[:4]), *row[4:]):
                raise StoreError(f"broker {registration.broker_id} is already running as process {row[0]}")
            self._pulse.execute(
                "INSERT OR REPLACE INTO registration "
                "(broker_id, session, pid, started, boot, namespace, timeout_ms, heartbeat_ms, payload) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    registration.broker_id,
                    session,
                    *self._process,
                    self._timeout_ms,
                    self._now_ms(),
                    registration.payload,
                ),
            )
        return session

    def change(self, registration: Registration, session: int) -> bool:
        """Whether the session was there to be changed."""
        changed = self._pulse.execute(
            "UPDATE registration SET payload = ? WHERE broker_id = ? AND session = ?",
            (registration.payload, registration.broker_id, session),
        )
        return changed.rowcount == 1

    def beat(self, session: int) -> bool:
        """Whether the session is there, which then lasts for another time-out."""
        changed = self._pulse.execute(
            "UPDATE registration SET heartbeat_ms = ? WHERE session = ?", (self._now_ms(), session)
        )
        return changed.rowcount == 1

    def end(self, session: int) -> None:
        self._pulse.execute("DELETE FROM registration WHERE session = ?", (session,))

    def evict(self, registration: Registration) -> bool:
        changed = self._pulse.execute(
            "DELETE FROM registration WHERE broker_id = ? AND payload = ?",
            (registration.broker_id, registration.payload),
        )
        return changed.rowcount == 1

    def ended(self, own_session: int) -> list[EndedSession]:
        """Those of others that should be ended. A broker never ends its own: if nobody missed it, it goes on."""
        rows = self._db.execute(
            "SELECT session, pid, started, boot, namespace, timeout_ms, heartbeat_ms FROM registration "
            "WHERE session != ?",
            (own_session,),
        ).fetchall()
        return [
            EndedSession(row[0], row[6], self._is_certain(ProcessId(*row[1:5])))
            for row in rows
            if self._has_ended(ProcessId(*row[1:5]), *row[5:])
        ]

    def write_down(self, ended: Sequence[EndedSession]) -> None:
        """A session that has had a heartbeat since goes on."""
        with transaction(self._pulse):
            self._pulse.executemany(
                "DELETE FROM registration WHERE session = ? AND heartbeat_ms = ?", [each[:2] for each in ended]
            )

    def registered(self) -> dict[int, Registration]:
        rows = self._db.execute("SELECT session, broker_id, payload FROM registration ORDER BY broker_id")
        return {session: Registration(broker_id, payload) for session, broker_id, payload in rows}

    def elect(self, broker_id: int, session: int) -> ControllerAndEpoch:
        with transaction(self._db):
            self._check_session(session)
            holder, epoch = self._holder()
            if holder is not None and holder.broker_id != broker_id:
                return holder
            self._db.execute(
                "UPDATE controller SET broker_id = ?, session = ?, epoch = ?", (broker_id, session, epoch + 1)
            )
            return ControllerAndEpoch(broker_id, epoch + 1)

    def resign(self, leadership: ControllerAndEpoch) -> None:
        with transaction(self._db):
            self._db.execute(
                "UPDATE controller SET broker_id = NULL, session = NULL WHERE broker_id = ? AND epoch = ?",
                (leadership.broker_id, leadership.epoch),
            )

    def controller(self) -> ControllerAndEpoch | None:
        return self._holder()[0]

    def check(self, controller_epoch: int, session: int) -> None:
        """Raises Fenced unless this session was elected so and is there. Part of the caller's transaction."""
        elected, epoch = self._db.execute("SELECT session, epoch FROM controller").fetchone()
        if epoch != controller_epoch:
            raise Fenced(f"controller epoch {controller_epoch} was replaced by {epoch}")
        if elected != session:
            raise Fenced(f"controller epoch {controller_epoch} was given up, or its session ended")
        self._check_session(session)

    def _holder(self) -> tuple[ControllerAndEpoch | None, int]:
        """The controller, if its session is there, and the last epoch."""
        broker_id, epoch, session = self._db.execute(
            "SELECT controller.broker_id, controller.epoch, registration.session FROM controller "
            "LEFT JOIN registration ON registration.session = controller.session"
        ).fetchone()
        return (None if session is None else ControllerAndEpoch(broker_id, epoch)), epoch

    def _check_session(self, session: int) -> None:
        if not self._db.execute("SELECT 1 FROM registration WHERE session = ?", (session,)).fetchone():
            raise Fenced("this broker is not registered, or its session ended")

    def _has_ended(self, process: ProcessId, timeout_ms: int, heartbeat_ms: int) -> bool:
        return self._now_ms() - heartbeat_ms >= timeout_ms or self._is_certain(process)

    @staticmethod
    def _is_certain(process: ProcessId) -> bool:
        return is_of_another_boot(process) or is_gone(process)
