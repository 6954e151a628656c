"""Leaders, in-sync replicas and high watermarks over time, as living brokers tell them."""

from __future__ import annotations

import contextlib
import threading
from itertools import count
from typing import Any

from tests.faults.cluster import asking
from tests.faults.cluster import history as h
from tests.faults.cluster.asking import ClusterState
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.history import History
from tests.faults.cluster.worker import TOPICS

EVERY_S = 0.25
WATERMARKS_EVERY = 3  # of those looks


class Observer:
    """Notes the state of all partitions whenever it changes; those who are cut off are not asked."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self._cluster = cluster
        self._history = history
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.struck: frozenset[int] = frozenset()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        known: dict[str, Any] = {}
        for number in count():
            if self._ending.wait(EVERY_S):
                return
            # When all are struck there is nobody better to ask than they.
            without = self.struck if len(self.struck) < len(self._cluster.brokers) else frozenset()
            try:
                state = self._cluster.state(without=without)
            except OSError:
                continue
            if number % WATERMARKS_EVERY == 0:
                self._note_watermarks(state)
            now = described(state)
            changed = {name: state for name, state in now.items() if known.get(name) != state}
            if changed:
                self._history.note("observer", h.OBSERVE, h.OK, detail=changed)
            known = now

    def _note_watermarks(self, state: ClusterState) -> None:
        """Asked by one thread, one leader after the other: what is heard later was true later."""
        led: dict[int, dict[tuple[str, int], int]] = {}
        for key, each in state.partitions.items():
            if key[0] in TOPICS:
                led.setdefault(each.leader, {})[key] = each.leader_epoch
        for leader, epochs in led.items():
            broker = self._cluster.brokers.get(leader)
            if broker is None or leader in self.struck or not broker.is_running:
                continue
            with contextlib.suppress(OSError):
                found = asking.high_watermarks(broker.address, epochs)
                detail = {f"{topic}-{index}": [epochs[topic, index], end] for (topic, index), end in found.items()}
                self._history.note("observer", h.WATERMARKS, h.OK, detail=detail)


def described(state: ClusterState) -> dict[str, Any]:
    """By partition: the leader, then who is in sync."""
    return {
        f"{topic}-{partition}": [each.leader, sorted(each.isr)] for (topic, partition), each in state.partitions.items()
    }
