"""A whole run: a cluster, clients, faults one after the other, then peace, the last polls and the judgement."""

from __future__ import annotations

import contextlib
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.faults.cluster import asking
from tests.faults.cluster import history as h
from tests.faults.cluster.asking import Refused
from tests.faults.cluster.checker import Verdict, check, is_all_seen
from tests.faults.cluster.cluster import PROJECT, Broker, Cluster, Shape
from tests.faults.cluster.facts import Facts
from tests.faults.cluster.faults import ISR_S_MAX, Ground, await_full_isr, strike
from tests.faults.cluster.history import Event, History, HistoryTail, read_history
from tests.faults.cluster.liveness import Liveness, judge_liveness
from tests.faults.cluster.network import Network
from tests.faults.cluster.observing import Observer
from tests.faults.cluster.replica_files import differences
from tests.faults.cluster.schedule import NETWORK, Planned, plan, possible
from tests.faults.cluster.worker import TOPICS
from tests.faults.cluster.workload import Spec

CLIENTS = ("c1", "c2")
PARTITIONS = 3
HEALED_S = 10.0
FINAL_S_MAX = 200.0
FIRST_ACKNOWLEDGED = 50
BEGIN_S_MAX = 120.0
DRAIN_S_MAX = 90.0
PAUSE_S = 2.0
_BOTH = ["producer", "producer", "writer", "copier", "member"]
WORKERS = {"c1": [*_BOTH, "reader", "corruptor"], "c2": [*_BOTH, "raw_reader", "late_ender"]}
A_TRANSACTIONAL_ID = "c1-writer-2"
RESULT = "result.json"


class Summary(msgspec.Struct):
    """What is left of a run for a table of many."""

    has_passed: bool
    counts: dict[int, int]
    operations: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    faults: list[str] = []
    complaints: list[str] = []


@dataclass(frozen=True)
class Options:
    shape: Shape
    seconds: float
    seed: int
    directory: Path
    only: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    sends_per_s: float = 100.0
    final_s_max: float = FINAL_S_MAX
    healed_s: float = HEALED_S


@dataclass
class Result:
    verdict: Verdict
    liveness: Liveness
    seconds: float
    planned: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def has_passed(self) -> bool:
        return self.verdict.is_sound and not self.liveness.complaints and not self.complaints

    @property
    def summary(self) -> Summary:
        verdict = self.verdict
        counts = {number: finding.count for number, finding in verdict.findings.items()}
        return Summary(
            self.has_passed, counts, verdict.operations, verdict.acknowledged, self.seconds, self.planned,
            [*self.liveness.complaints, *self.complaints],
        )  # fmt: skip


class Clients:
    """A process of clients on a host; nothing is left of it when the run ends."""

    def __init__(self, network: Network, host: str | None, spec: Spec, directory: Path) -> None:
        path = directory / f"{spec.name}.json"
        path.write_bytes(msgspec.json.encode(spec))
        command = [sys.executable, "-m", "tests.faults.cluster.workload", str(path)]
        with (directory / f"{spec.name}.txt").open("wb") as errors:
            self.process = subprocess.Popen(
                command if host is None else network.command(host, command),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=PROJECT, start_new_session=True,
            )  # fmt: skip

    def drain(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"drain\n")
        self.process.stdin.flush()

    def await_drained(self, deadline_s: float) -> bool:
        assert self.process.stdout is not None
        left_s = max(0.0, deadline_s - time.monotonic())
        readable, _, _ = select.select([self.process.stdout], [], [], left_s)
        return bool(readable) and self.process.stdout.readline() == b"drained\n"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Run:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.directory = options.directory
        self.shape = options.shape
        self.network = Network([*self.shape.hosts, *self.shape.store_servers, *CLIENTS])
        self.network.build()
        self.cluster = Cluster(self.shape, self.network, self.directory)
        self.history = History(self.directory / "run.jsonl")
        self.observer = Observer(self.cluster, self.history)
        self.ground = Ground(
            self.cluster, self.network, list(CLIENTS), A_TRANSACTIONAL_ID, random.Random(options.seed)
        )  # fmt: skip
        self.complaints: list[str] = []
        self.planned: list[str] = []

    def run(self) -> Result:
        begun_s = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.callback(self.cluster.close)
            say(f"starting {self.shape.brokers} brokers ({self.shape.kind}, {self.shape.store})")
            self.cluster.start()
            self.create_topics()
            self.observer.start()
            stack.callback(self.observer.close)
            clients = [self.start_clients(host, host, WORKERS[host]) for host in CLIENTS]
            for each in clients:
                stack.callback(each.close)
            self.await_acknowledged()
            self.trouble()
            self.network.heal()
            time.sleep(self.options.healed_s)
            self.finish(clients, stack)
            differing = self.compare_replicas()
        events = self.events()
        verdict = check(events, differing_replicas=differing)
        liveness = judge_liveness(
            events, session_timeout_s=self.shape.session_timeout_s, brokers=self.shape.brokers
        )  # fmt: skip
        self.complaints += [
            f"the harness failed: {event.error}" for event in events if event.op == "session" and event.phase == "crash"
        ][:3]
        return Result(verdict, liveness, time.monotonic() - begun_s, self.planned, self.complaints)

    def create_topics(self) -> None:
        config = {"min.insync.replicas": str(self.shape.min_insync_replicas), "segment.bytes": "1048576"}
        for name in TOPICS:
            self._create_topic(name, config)
        assert await_full_isr(self.cluster, BEGIN_S_MAX), "the topics' replicas are not in sync"

    def _create_topic(self, name: str, config: dict[str, str]) -> None:
        """A cluster that has just come together may refuse it for a while."""
        deadline_s, copies = time.monotonic() + BEGIN_S_MAX, self.shape.replication_factor
        address = self.cluster.brokers[1].address
        while True:
            try:
                asking.create_topic(
                    address, name, partitions=PARTITIONS, replication_factor=copies, config=config
                )  # fmt: skip
                return
            except (OSError, Refused):
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.5)

    def start_clients(self, name: str, host: str | None, workers: list[str]) -> Clients:
        spec = Spec(
            self.cluster.client_settings(), self.cluster.addresses, str(self.directory / f"{name}.jsonl"), name,
            workers, seed=self.options.seed, sends_per_s=self.options.sends_per_s, partitions=PARTITIONS,
        )  # fmt: skip
        return Clients(self.network, host, spec, self.directory)

    def await_acknowledged(self) -> None:
        tails = [HistoryTail(self.directory / f"{name}.jsonl") for name in CLIENTS]
        deadline_s, counts = time.monotonic() + BEGIN_S_MAX, [0] * len(tails)
        while min(counts) < FIRST_ACKNOWLEDGED:
            assert time.monotonic() < deadline_s, "nothing is acknowledged"
            time.sleep(0.2)
            for at, tail in enumerate(tails):
                counts[at] += sum(event.op == h.SEND and event.phase == h.OK for event in tail.more())

    def trouble(self) -> None:
        """Faults one after the other, each on a cluster that is whole."""
        options = self.options
        kinds = possible(brokers=self.shape.brokers, store=self.shape.store, only=options.only, roles=options.roles)
        deadline_s = time.monotonic() + options.seconds
        # Long enough to see the cluster go on without the broker.
        planned = plan(options.seed, kinds, hold_s_max=max(self.shape.session_timeout_s + 8, options.seconds / 6))
        for number in range(1, 10_000):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not kinds:
                break
            if not self.one_fault(number, next(planned)):
                break
            if not await_full_isr(self.cluster, ISR_S_MAX):
                self.complaints.append(f"not all replicas were in sync {ISR_S_MAX:.0f} s after fault {number}")
                break
            time.sleep(PAUSE_S)

    def one_fault(self, number: int, planned: Planned) -> bool:
        """Whether the cluster could be made whole again, as far as is known."""
        try:
            targets = self.ground.chosen(planned.role) if planned.role else []
            led = self.led_by(targets)
        except OSError as wrong:
            say(f"{planned} is left out: {wrong}")
            time.sleep(PAUSE_S)
            return True
        ids = [target.id for target in targets]
        say(f"{planned}: {', '.join(f'broker {each}' for each in ids) or 'nobody in particular'}")
        self.planned.append(str(planned))
        is_judged = self.shape.has_network_sessions or planned.kind not in NETWORK
        detail = {
            "targets": ids, "ends_session": is_judged and planned.kind.ends_session,
            "one_broker": is_judged and planned.is_one_broker, "led": led,
        }  # fmt: skip
        self.observer.struck = frozenset(ids)
        self.history.note("run", h.FAULT, h.INVOKE, id=number, value=str(planned), detail=detail)
        try:
            with strike(self.ground, planned, targets):
                time.sleep(planned.hold_s)
                self.history.note("run", h.FAULT, h.OK, id=number)
        except (AssertionError, OSError, Refused) as wrong:
            self.complaints.append(f"{planned} could not be undone: {wrong}")
            return False
        finally:
            self.observer.struck = frozenset()
        return True

    def led_by(self, targets: list[Broker]) -> list[str]:
        ids = {target.id for target in targets}
        if not ids:
            return []
        partitions = self.cluster.state().partitions
        return [f"{topic}-{index}" for (topic, index), state in partitions.items() if state.leader in ids]

    def finish(self, clients: list[Clients], stack: contextlib.ExitStack) -> None:
        say("healed; the last polls")
        for each in clients:
            each.drain()
        deadline_s = time.monotonic() + DRAIN_S_MAX
        for each in clients:
            if not each.await_drained(deadline_s):
                self.complaints.append("senders did not come to an end")
        final = self.start_clients("final", None, ["reader", "raw_reader"])
        stack.callback(final.close)
        final.drain()
        deadline_s = time.monotonic() + self.options.final_s_max
        facts, tails = Facts(), [HistoryTail(self.directory / f"{name}.jsonl") for name in (*CLIENTS, "final")]
        while time.monotonic() < deadline_s:
            time.sleep(2)
            facts.add(sorted((event for tail in tails for event in tail.more()), key=lambda event: event.at_s))
            readers = [viewer for viewer in facts.viewers.values() if "reader" in viewer.name]
            if all(viewer.is_complete for viewer in readers) and is_all_seen(facts):
                break
        else:
            for each in clients:
                each.process.send_signal(signal.SIGUSR1)
        self.history.note("run", h.FINAL, h.OK)

    def events(self) -> list[Event]:
        return read_history(sorted(self.directory.glob("*.jsonl")))

    def compare_replicas(self) -> list[str]:
        """Once all are in sync, which is asked for here again: by now nothing is written any more."""
        if not await_full_isr(self.cluster, ISR_S_MAX):
            self.complaints.append(f"not all replicas were in sync {ISR_S_MAX:.0f} s after the end")
        try:
            return list(self._differing())
        except (OSError, Refused) as wrong:
            self.complaints.append(f"replicas could not be compared: {wrong}")
            return []

    def _differing(self) -> Iterator[str]:
        for (topic, partition), state in self.cluster.state().partitions.items():
            if state.leader not in self.cluster.brokers:
                yield f"{topic}-{partition} has no leader"
                continue
            name = f"{topic}-{partition}"
            end = asking.high_watermark(self.cluster.brokers[state.leader].address, topic, partition)
            folders = {each: self.cluster.brokers[each].data / name for each in state.replicas}
            yield from differences(name, folders, high_watermark=end)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def report(result: Result) -> str:
    lines = [
        str(result.verdict),
        "",
        "faults, acknowledged sends meanwhile, other leaders after, all in sync again after",
    ]
    for fault in result.liveness.faults:
        leader = "-" if fault.leaderless_s is None else f"{fault.leaderless_s:.1f} s"
        grown = "-" if fault.grown_s is None else f"{fault.grown_s:.1f} s"
        lines.append(f"  {fault.name}: {fault.acknowledged}, {leader}, {grown}")
    lines += ["", *(f"WRONG: {text}" for text in (*result.liveness.complaints, *result.complaints))]
    lines.append(f"{'passed' if result.has_passed else 'FAILED'} in {result.seconds:.0f} s")
    return "\n".join(lines)
