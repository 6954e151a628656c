"""How busy the event loop is, by the processor time of its thread: so nothing has to be counted on its way."""

from __future__ import annotations

import threading
import time
from collections import deque

from moldau.core.exposition import COUNTER, Exposition

WINDOW_S = 10.0  # idle shares are of the last time that is at least so long, if there is one


class EventLoopWriter:
    def __init__(self) -> None:
        ident = threading.main_thread().ident
        assert ident is not None, "the main thread runs the loop"
        self._clock = time.pthread_getcpuclockid(ident)
        self._looks = deque([self._look()])

    def _look(self) -> tuple[float, float]:
        return time.monotonic(), time.clock_gettime(self._clock)

    def __call__(self, out: Exposition) -> None:
        now_s, busy_s = self._look()
        looks = self._looks
        while len(looks) > 1 and looks[1][0] <= now_s - WINDOW_S:
            looks.popleft()
        since_s, before_s = looks[0]
        if looks[-1][0] <= now_s - 1.0:
            looks.append((now_s, busy_s))
        passed_s = now_s - since_s
        idle = min(1.0, max(0.0, 1 - (busy_s - before_s) / passed_s)) if passed_s > 0 else 1.0
        # One loop does what network processors and request handlers do in Kafka.
        for name in (
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        ):
            out.add(name, "The share of time in which the event loop was idle, from 0 to 1.", {}, round(idle, 4))
        help_text = "Processor time of the event loop's thread."
        out.add("moldau_event_loop_cpu_seconds_total", help_text, {}, busy_s, COUNTER)
