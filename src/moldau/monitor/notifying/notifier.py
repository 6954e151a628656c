"""One notifier: the incidents that it told of, and a thread that sends, so that nobody who watches waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from threading import Event as Flag
from typing import Protocol
from uuid import uuid4

import msgspec

from moldau.monitor.judging import Judged
from moldau.monitor.notifying.deciding import Event, Incident, When, decided
from moldau.monitor.notifying.messages import fields
from moldau.monitor.notifying.sending import NotSent, Sender
from moldau.monitor.rules import GroupVerdict, Status
from moldau.monitor.watching import Wanted

logger = logging.getLogger(__name__)

WAITING_MAX = 1_000  # messages; more than that nobody reads either
ATTEMPTS_MAX = 3
PAUSE_S = 2.0
TOLD = ("cluster", "group", "status")  # fields of the log

Key = tuple[str, str]


class IncidentKeeper(Protocol):
    def incidents(self, notifier: str) -> dict[Key, str]: ...

    def keep_incident(self, notifier: str, cluster: str, group: str, incident: str | None) -> None: ...


@dataclass(slots=True)
class Notifier:
    name: str
    sender: Sender
    when: When = field(default_factory=When)
    wanted: Wanted = field(default_factory=Wanted)
    keeper: IncidentKeeper | None = None
    new_id: Callable[[], str] = lambda: str(uuid4())
    incidents: dict[Key, Incident] = field(default_factory=dict)
    waiting: Queue[tuple[Event, dict[str, str]]] = field(default_factory=lambda: Queue(WAITING_MAX))

    def __post_init__(self) -> None:
        if self.keeper is not None:
            for key, kept in self.keeper.incidents(self.name).items():
                self.incidents[key] = msgspec.json.decode(kept, type=Incident)

    def tell(self, cluster: str, judged: Judged) -> None:
        for name, verdict in judged.verdicts.items():
            if self.wanted.has(name):
                self._judge(verdict, judged.look.at_ms)
        if judged.look.groups.are_all:
            # All keys at one blow: threads of other clusters add theirs meanwhile.
            gone = [key for key in [*self.incidents] if key[0] == cluster and key[1] not in judged.verdicts]
            for _, name in gone:
                self._judge(GroupVerdict(cluster, name, Status.NOTFOUND, 0.0, (), None, 0), judged.look.at_ms)

    def _judge(self, verdict: GroupVerdict, now_ms: int) -> None:
        key = verdict.cluster, verdict.group
        before = self.incidents.get(key)
        if before is None and verdict.status <= Status.OK:
            return
        after, event = decided(
            before, verdict.status, self.when, now_ms=now_ms, new_id=self.new_id() if before is None else ""
        )
        if after is None:
            self.incidents.pop(key, None)
        else:
            self.incidents[key] = after
        if self.keeper is not None and after != before:
            kept = None if after is None else msgspec.json.encode(after).decode()
            self.keeper.keep_incident(self.name, *key, kept)
        told_of = after or before
        if event is not None and told_of is not None:
            self._put(event, fields(event, told_of, verdict))

    def _put(self, event: Event, known: dict[str, str]) -> None:
        try:
            self.waiting.put_nowait((event, known))
        except Full:
            extra = {"notifier": self.name, "cluster": known["cluster"], "group": known["group"]}
            logger.warning("notifier %s is %d messages behind; one is left out", self.name, WAITING_MAX, extra=extra)

    def run(self, stop: Flag) -> None:
        while not stop.is_set():
            try:
                event, known = self.waiting.get(timeout=0.5)
            except Empty:
                continue
            self.send(event, known, stop)

    def send(self, event: Event, known: dict[str, str], stop: Flag) -> None:
        extra = {"notifier": self.name, "event": event.value, **{each: known[each] for each in TOLD}}
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                self.sender.send(event, known)
                logger.info("notifier %s told of group %s: %s", self.name, known["group"], event.value, extra=extra)
                return
            except NotSent as wrong:
                failed = {**extra, "attempt": attempt, "failure": str(wrong)}
                logger.warning(
                    "notifier %s, attempt %d of %d: %s", self.name, attempt, ATTEMPTS_MAX, wrong, extra=failed
                )
            if attempt < ATTEMPTS_MAX and stop.wait(PAUSE_S * attempt):
                return
