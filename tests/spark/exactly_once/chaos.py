"""Queries run to their end while driver, Python workers, broker and database are killed in the middle of batches."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.spark.exactly_once.plan import Query
from tests.spark.exactly_once.processes import Driver, task_workers
from tests.spark.exactly_once.servers import CrashingBroker
from tests.spark.tables.postgresql import Server

LOOK_S = 0.05
JITTER_S_MAX = 0.4
FAILURES_MAX = 12  # of drivers that nobody killed: what a kill of a worker or of the broker may bring with it


@dataclass(slots=True)
class Told:
    """What happened on the way."""

    kills: list[str] = field(default_factory=list)
    starts: int = 0
    failures: int = 0


@dataclass(slots=True)
class Chaos:
    """Runs a job with faults: the next one comes when the queries are a step further and one of them is in a batch."""

    queries: Sequence[Query]
    broker: CrashingBroker
    chance: random.Random
    output: Path
    master: str
    config: dict[str, str] = field(default_factory=dict)
    cluster_pids: Sequence[int] = ()
    runs_s_max: float = 3600.0
    told: Told = field(default_factory=Told)
    database: Server | None = None

    def run(self, faults: Sequence[str], *, batches: int) -> None:
        """To the end of all queries, `batches` in all, with the faults spread over the way."""
        waiting = [(number * batches // (len(faults) + 1), fault) for number, fault in enumerate(faults, 1)]
        deadline_s = time.monotonic() + self.runs_s_max
        while True:
            assert time.monotonic() < deadline_s, f"no end in {self.runs_s_max} s: {self.tail()}"
            with self.output.open("ab") as output, Driver(self.job(), output=output) as driver:
                self.told.starts += 1
                self.attend(driver, waiting, deadline_s=deadline_s)
            if driver.exit_code() == 0:
                assert not waiting, f"the queries ended before {waiting}"
                return
            self.told.failures += driver.exit_code() != -signal.SIGKILL
            assert self.told.failures <= FAILURES_MAX, f"it fails again and again: {self.tail()}"

    def job(self) -> dict[str, Any]:
        return {
            "master": self.master,
            "config": self.config,
            "queries": [query.fields for query in self.queries],
        }

    def attend(self, driver: Driver, waiting: list[tuple[int, str]], *, deadline_s: float) -> None:
        """Until the driver ends, by itself or not."""
        while driver.exit_code() is None and time.monotonic() < deadline_s:
            if waiting and sum(query.done() for query in self.queries) >= waiting[0][0]:
                fault = waiting[0][1]
                met = [query for query in self.queries if fault != "database" or query.kind == "postgresql"]
                query = self.chance.choice([each for each in met if each.is_in_a_batch()] or met)
                if self.wait_for_a_batch(driver, query) and self.strike(fault, driver):
                    self.told.kills.append(f"{fault} in batch {query.done()} of {query.kind}")
                    waiting.pop(0)
            time.sleep(LOOK_S)

    def wait_for_a_batch(self, driver: Driver, query: Query) -> bool:
        """Whether the query is in a batch, some way into it."""
        end_s = time.monotonic() + 2 * JITTER_S_MAX
        while not query.is_in_a_batch():
            if driver.exit_code() is not None or time.monotonic() > end_s:
                return False
            time.sleep(LOOK_S)
        time.sleep(self.chance.uniform(0, JITTER_S_MAX))
        return query.is_in_a_batch()

    def strike(self, fault: str, driver: Driver) -> bool:
        """Whether there was something to strike."""
        strikes: dict[str, Callable[[], bool]] = {
            "driver": lambda: self.kill_driver(driver),
            "worker": lambda: self.kill_worker(driver),
            "broker": self.kill_broker,
            "database": self.crash_database,
        }
        return strikes[fault]()

    def kill_driver(self, driver: Driver) -> bool:
        driver.kill()
        return True

    def kill_worker(self, driver: Driver) -> bool:
        found = task_workers([driver.pid, *self.cluster_pids])
        if not found:
            return False
        try:
            os.kill(self.chance.choice(found), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def kill_broker(self) -> bool:
        self.broker.crash()
        return True

    def crash_database(self) -> bool:
        assert self.database is not None, "a plan with this fault has a database"
        self.database.restart_after_crash()
        return True

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-4000:]
