"""A SQLite file in which windows, positions and changes of status survive a restart.

It stays bounded: a window is one row that is replaced, and of changes the newest are kept. A crash loses the last look
at most, which the next one reads again from the cluster.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from moldau.core.ids import TopicPartition
from moldau.monitor.rules import Status
from moldau.monitor.sampling.look import Looker
from moldau.monitor.watching import Change
from moldau.monitor.windows import Window, Windows

logger = logging.getLogger(__name__)

VERSION = 1
CHANGES_MAX = 100_000
LATE_CHANGES_MAX = 10_000  # of a cluster, while the file can't be written: some MB
SCHEMA = """
CREATE TABLE IF NOT EXISTS windows (
    cluster TEXT, consumer TEXT, topic TEXT, part INTEGER, commits BLOB, PRIMARY KEY (cluster, consumer, topic, part)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ends (
    cluster TEXT, topic TEXT, part INTEGER, offsets BLOB, PRIMARY KEY (cluster, topic, part)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (cluster TEXT PRIMARY KEY, offsets TEXT);
CREATE TABLE IF NOT EXISTS statuses (
    cluster TEXT, consumer TEXT, status INTEGER, PRIMARY KEY (cluster, consumer)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes (
    id INTEGER PRIMARY KEY, cluster TEXT, consumer TEXT, at_ms INTEGER, before INTEGER, status INTEGER, lag INTEGER,
    lag_seconds REAL
);
CREATE INDEX IF NOT EXISTS changes_of_group ON changes (cluster, consumer);
CREATE TABLE IF NOT EXISTS incidents (
    notifier TEXT, cluster TEXT, consumer TEXT, incident TEXT, PRIMARY KEY (notifier, cluster, consumer)
) WITHOUT ROWID;
"""


class UnusableHistory(Exception):
    """The file is of something else, or of a newer Moldau."""


@dataclass(frozen=True, slots=True)
class PastChange:
    at_ms: int
    before: Status
    status: Status
    lag: int
    lag_seconds: float | None


class History:
    """Used by the threads of all clusters: each call is one transaction."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = Lock()
        self._late_changes: dict[str, list[Change]] = {}
        """By cluster: what could not be written yet."""
        self._late_incidents: dict[tuple[str, str, str], str | None] = {}
        try:
            self._file = sqlite3.connect(path, check_same_thread=False)
            found = self._file.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, VERSION):
                raise UnusableHistory(f"{path} is of another version of Moldau ({found}); this one writes {VERSION}")
            damage = self._file.execute("PRAGMA quick_check(1)").fetchone()[0]  # before it is read in pieces
            if damage != "ok":
                raise UnusableHistory(f"{path} is damaged ({damage}); move it away, and a new one is begun")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.executescript(SCHEMA)
            self._file.execute(f"PRAGMA user_version = {VERSION}")
        except sqlite3.Error as wrong:
            raise UnusableHistory(f"{path} can't be used as history: {wrong}") from None

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def load(self, cluster: str, windows: Windows, looker: Looker) -> dict[str, Status]:
        """Raises UnusableHistory."""
        ask = self._file.execute
        with self._read():
            rows = ask("SELECT consumer, topic, part, commits FROM windows WHERE cluster = ?", (cluster,))
            for group, topic, partition, commits in rows:
                windows.groups.setdefault(group, {}).setdefault(topic, {})[partition] = Window(commits)
            for topic, partition, ends in ask("SELECT topic, part, offsets FROM ends WHERE cluster = ?", (cluster,)):
                windows.load_ends(TopicPartition(topic, partition), ends)
            for (positions,) in ask("SELECT offsets FROM positions WHERE cluster = ?", (cluster,)):
                looker.reader.positions = {int(each): offset for each, offset in json.loads(positions).items()}
            statuses = ask("SELECT consumer, status FROM statuses WHERE cluster = ?", (cluster,))
            return {group: Status(status) for group, status in statuses}

    def keep(self, cluster: str, windows: Windows, looker: Looker, changes: Iterable[Change]) -> None:
        """What a full disk keeps from being written is written later."""
        changes = [*changes]
        try:
            self._keep(cluster, windows, looker, changes)
        except sqlite3.Error as wrong:
            late = [*self._late_changes.get(cluster, ()), *changes]
            self._late_changes[cluster] = late[-LATE_CHANGES_MAX:]
            extra = {"cluster": cluster, "failure": str(wrong)}
            logger.warning("history of cluster %s can't be written: %s", cluster, wrong, extra=extra)

    def _keep(self, cluster: str, windows: Windows, looker: Looker, changes: Iterable[Change]) -> None:
        saved = [*windows.changed]
        gone = [*windows.gone]
        with self._transaction() as file:
            self._keep_changes(file, cluster, self._late_changes.get(cluster, ()))
            for group, topic in gone:
                values = (cluster, group) if topic is None else (cluster, group, topic)
                condition = "cluster = ? AND consumer = ?" + ("" if topic is None else " AND topic = ?")
                file.execute(f"DELETE FROM windows WHERE {condition}", values)
                if topic is None:
                    file.execute("DELETE FROM statuses WHERE cluster = ? AND consumer = ?", values)
                    file.execute("DELETE FROM incidents WHERE cluster = ? AND consumer = ?", values)
            for group, place in saved:
                window = windows.window(group, place)
                if window:
                    row = (cluster, group, *place, window.cells.tobytes())
                    file.execute("REPLACE INTO windows VALUES (?, ?, ?, ?, ?)", row)
                else:
                    key = (cluster, group, *place)
                    file.execute(
                        "DELETE FROM windows WHERE cluster = ? AND consumer = ? AND topic = ? AND part = ?", key
                    )
            file.execute("DELETE FROM ends WHERE cluster = ?", (cluster,))
            ends = ((cluster, *place, kept.tobytes()) for place, kept in windows.ends.items())
            file.executemany("INSERT INTO ends VALUES (?, ?, ?, ?)", ends)
            file.execute("REPLACE INTO positions VALUES (?, ?)", (cluster, json.dumps(looker.reader.positions)))
            self._keep_changes(file, cluster, changes)
        windows.changed.difference_update(saved)
        windows.gone.difference_update(gone)
        self._late_changes.pop(cluster, None)

    def _keep_changes(self, file: sqlite3.Connection, cluster: str, changes: Iterable[Change]) -> None:
        for each in changes:
            verdict = each.verdict
            file.execute("REPLACE INTO statuses VALUES (?, ?, ?)", (cluster, each.group, verdict.status))
            row = (cluster, each.group, each.at_ms, each.before, verdict.status, verdict.totallag, verdict.lag_seconds)
            last = file.execute("INSERT INTO changes VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid or 0
            file.execute("DELETE FROM changes WHERE id <= ?", (last - CHANGES_MAX,))

    def changes(self, cluster: str, group: str, most: int) -> list[PastChange]:
        """The newest first."""
        with self._lock:
            rows = self._file.execute(
                "SELECT at_ms, before, status, lag, lag_seconds FROM changes WHERE cluster = ? AND consumer = ?"
                " ORDER BY id DESC LIMIT ?",
                (cluster, group, most),
            ).fetchall()
        return [PastChange(row[0], Status(row[1]), Status(row[2]), row[3], row[4]) for row in rows]

    def incidents(self, notifier: str) -> dict[tuple[str, str], str]:
        """Raises UnusableHistory."""
        with self._read():
            rows = self._file.execute(
                "SELECT cluster, consumer, incident FROM incidents WHERE notifier = ?", (notifier,)
            ).fetchall()
        return {(cluster, group): incident for cluster, group, incident in rows}

    def keep_incident(self, notifier: str, cluster: str, group: str, incident: str | None) -> None:
        """None: it is over. What a full disk keeps from being written is written later."""
        with self._lock:
            self._late_incidents[notifier, cluster, group] = incident
        try:
            with self._transaction():
                pass
        except sqlite3.Error as wrong:
            extra = {"notifier": notifier, "cluster": cluster, "group": group, "failure": str(wrong)}
            logger.warning("incidents of notifier %s can't be written: %s", notifier, wrong, extra=extra)

    @contextmanager
    def _read(self) -> Iterator[None]:
        """A disk may have damaged the file, or somebody another program's rows."""
        try:
            with self._lock:
                yield
        except (sqlite3.Error, ValueError, TypeError, AttributeError) as wrong:
            raise UnusableHistory(f"{self._path} can't be used as history: {wrong}") from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """With the incidents that could not be written before."""
        with self._lock:
            with self._file as file:
                self._keep_incidents(file)
                yield file
            self._late_incidents.clear()

    def _keep_incidents(self, file: sqlite3.Connection) -> None:
        for (notifier, cluster, group), incident in self._late_incidents.items():
            if incident is None:
                file.execute(
                    "DELETE FROM incidents WHERE notifier = ? AND cluster = ? AND consumer = ?",
                    (notifier, cluster, group),
                )
            else:
                file.execute("REPLACE INTO incidents VALUES (?, ?, ?, ?)", (notifier, cluster, group, incident))
