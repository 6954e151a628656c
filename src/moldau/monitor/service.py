"""All of a monitor in one process: a thread for each cluster and each notifier, and what the answers are made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Thread

from moldau.client.cluster import Cluster
from moldau.core.clock import Clock
from moldau.monitor.history import History
from moldau.monitor.judging import Judged
from moldau.monitor.notifying.notifier import Notifier
from moldau.monitor.settings import Settings
from moldau.monitor.watching import Watch

JOIN_S = 2.0  # for all; a look that is under way is not waited for: it changes nothing that a next start would miss
LOOKS_MISSED_MAX = 3
TAKES_STOCK = "kminion"  # the family of metrics that sizes on disk and configurations of topics are asked for


@dataclass(slots=True)
class Monitor:
    settings: Settings
    clock: Clock
    watches: Mapping[str, Watch]
    notifiers: tuple[Notifier, ...] = ()
    history: History | None = None
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    """Told the name of each cluster that was looked at, in the thread that looked."""
    _stop: Event = field(default_factory=Event)
    _threads: list[Thread] = field(default_factory=list)

    def start(self) -> None:
        for name, run in [
            *((f"watch {each.name}", each.run) for each in self.watches.values()),
            *((f"notify {each.name}", each.run) for each in self.notifiers),
        ]:
            thread = Thread(target=run, args=(self._stop,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stop.set()
        until_s = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        if self.history is not None and not any(each.is_alive() for each in self._threads):
            self.history.close()

    @property
    def is_ready(self) -> bool:
        """Every cluster was looked at, and its commits were read up to the end."""
        states = [each.state for each in self.watches.values()]
        return all(each is not None and (each.look.is_caught_up or not each.look.reads_commits) for each in states)

    def sick(self) -> list[str]:
        """What keeps the monitor from its work; clusters that do not answer are no fault of its own."""
        late_ms = LOOKS_MISSED_MAX * self.settings.interval_s * 1_000 + self.patience_ms
        now_ms = self.clock.elapsed_ms()
        late = [
            f"cluster {each.name} was not looked at for {(now_ms - each.tried_ms) // 1_000} s"
            for each in self.watches.values()
            if each.tried_ms is not None and now_ms - each.tried_ms > late_ms
        ]
        return late + [f"thread {each.name} ended" for each in self._threads if not each.is_alive()]

    @property
    def patience_ms(self) -> int:
        return 60_000  # a look at a large cluster takes some seconds, a broker that hangs some more


def monitor_of(
    settings: Settings, openers: Mapping[str, Callable[[], Cluster]], clock: Clock, history: History | None = None
) -> Monitor:
    """`openers` make the client of each cluster."""
    notifiers = tuple(
        Notifier(each.name, each.sender, each.when, each.wanted, keeper=history) for each in settings.notifiers
    )

    listeners: list[Callable[[str], None]] = []

    def tell(cluster: str, judged: Judged) -> None:
        for each in notifiers:
            each.tell(cluster, judged)
        for listener in listeners:
            listener(cluster)

    watches = {
        each.name: Watch(
            each.name,
            openers[each.name],
            clock,
            settings.rules,
            settings.interval_s,
            wanted=each.wanted,
            read_commits=each.read_commits,
            takes_stock=TAKES_STOCK in settings.metrics,
            keeper=history,
            tell=tell,
        )
        for each in settings.clusters
    }
    return Monitor(settings, clock, watches, notifiers, history, listeners)
