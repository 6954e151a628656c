"""Every file that a broker writes, every call on it, every way that the call can fail: one life of a broker for each.

A life is a start, all kinds of writing by real clients, a stop and a start again. One fault strikes in one of these
phases; the disk heals soon after, and a broker that ended itself is started again, as a supervisor would. The clients
go on as if nothing were, and in the end everything that was acknowledged is there, once, and nothing that was aborted.
"""

from __future__ import annotations

import errno
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.apache_kafka import free_ports
from tests.faults.clients import PATIENT, read_partition
from tests.faults.failing_disk import ALWAYS, HALF, HALF_THEN_ERROR, FailingDisk, PreloadedBroker

WAIT_S_MAX = 60.0
FAULT_S = 0.4  # how long a lasting fault lasts, from its first strike
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.flush.offset.checkpoint.interval.ms": "150",
    "log.retention.check.interval.ms": "150",
    "log.cleaner.backoff.ms": "150",
    "log.segment.delete.delay.ms": "0",
}
ROLLING = {"segment.ms": "500", "segment.jitter.ms": "0"}
TOPICS = {
    "plain": ROLLING | {"flush.messages": "1"},
    "txn": ROLLING | {"index.interval.bytes": "1"},
    "compacted": ROLLING
    | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "max.compaction.lag.ms": "1"},
    "short": ROLLING | {"retention.ms": "1"},
}
EASY = {**PATIENT, "linger.ms": 0, "batch.num.messages": 1, "socket.timeout.ms": 5_000, "log_level": 0}
GROUP, TRANSACTIONAL_ID = "readers", "writer"

Traces: TypeAlias = dict[str, list[tuple[str, str]]]  # the calls and paths of each phase

# What may come of each call, apart from a short write, which is no failure.
ERRORS = {
    "open": ("EIO", "EMFILE"),
    "write": ("EIO", "ENOSPC"),
    "fsync": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "sendfile": ("EIO",),
}


@dataclass(frozen=True)
class Case:
    phase: str
    kind: str
    call: str
    fault: str
    skip: int = 0
    lasting: bool = False

    def __str__(self) -> str:
        often = f" from the {self.skip + 1}th on" if self.lasting else f" at the {self.skip + 1}th"
        return f"{self.phase}: {self.call} of {self.kind} {self.fault}{often}"

    def arm(self, disk: FailingDisk, data: Path) -> None:
        pattern = f"={data}{self.kind}"
        if self.fault == "short":
            disk.fail(pattern, self.call, how=HALF, skip=self.skip, times=3)
            return
        half = HALF_THEN_ERROR if self.call == "write" else 0
        times = ALWAYS if self.lasting else 1
        disk.fail(pattern, self.call, error=getattr(errno, self.fault), how=half, skip=self.skip, times=times)


def kind_of(path: str) -> str:
    """The pattern of all paths like this one."""
    path = re.sub(r"\.[0-9a-f]{32}-delete", ".*-delete", path)
    return re.sub(r"\d{20}", "*", re.sub(r"^/[^/]+-\d+(?=/|$|\.)", "/*-[0-9]*", path))


def cases(traces: Traces) -> Iterator[Case]:
    """Each point at its first occurrence; while clients write also in the middle, and on a disk that stays full."""
    for phase, calls in traces.items():
        for (call, kind), count in Counter((call, kind_of(path)) for call, path in calls).items():
            faults = ERRORS.get(call, ())
            for skip in sorted({0, count // 2} if count > 2 and phase == "run" else {0}):
                for fault in faults:
                    yield Case(phase, kind, call, fault, skip)
            if call in ("write", "open") and phase in ("run", "stop"):
                yield Case(phase, kind, call, "ENOSPC", 0, lasting=True)
            if call == "write":
                yield Case(phase, kind, call, "short", 0)


class Life:
    """A broker, who starts it again, and its clients."""

    def __init__(self, folder: Path, disk: FailingDisk) -> None:
        self.data = folder / "data"
        self.disk = disk
        (self.port,) = free_ports(1)
        self.broker: PreloadedBroker | None = None
        self.brokers: list[PreloadedBroker] = []
        self.struck = False
        self.endings: list[str] = []
        self.outputs: list[str] = []
        self._watching = threading.Event()
        self._lock = threading.Lock()
        self.aborted: set[bytes] = set()
        self.clock_ms = int(time.time() * 1000) - 10_000_000

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    # The broker and its supervisor.

    def start(self) -> None:
        """Start it; one that refuses to because of the fault says so in a line, and starts when the disk is healed."""
        for _ in range(2):
            broker = PreloadedBroker(self.disk, [self.data], port=self.port, overrides=SETTINGS)
            self.brokers.append(broker)
            self.struck = self.struck or self.disk.hits() > 0
            if broker.bootstrap:
                self.broker = broker
                return
            self.note_end(broker, started=False)
            self.disk.heal()
        raise AssertionError(f"does not start on a sound disk: {self.outputs[-1]}")

    def note_end(self, broker: PreloadedBroker, *, started: bool) -> None:
        output = broker.output()
        self.outputs.append(output)
        code = broker.process.wait(WAIT_S_MAX)
        lines = [line for line in output.splitlines() if line.startswith("moldau start: ")]
        assert (code, len(lines)) == (1, 1), f"exit code {code} and {len(lines)} lines that say why:\n{output}"
        self.endings.append(("" if started else "at start: ") + lines[0].removeprefix("moldau start: "))

    def supervise(self) -> threading.Thread:
        failures: list[BaseException] = []

        def watch() -> None:
            first_hit_s = 0.0
            while not self._watching.wait(0.02):
                try:
                    if self.disk.hits() > 0:
                        self.struck = True
                        first_hit_s = first_hit_s or time.monotonic()
                        if time.monotonic() - first_hit_s > FAULT_S:
                            self.disk.heal()
                    if self.broker is not None and not self.broker.is_running:
                        self.note_end(self.broker, started=True)
                        self.disk.heal()
                        self.start()
                except BaseException as wrong:
                    failures.append(wrong)
                    return

        thread = threading.Thread(target=watch, daemon=True)
        thread.failures = failures  # type: ignore[attr-defined]
        self._watching.clear()
        thread.start()
        return thread

    def end_supervision(self, thread: threading.Thread) -> None:
        self._watching.set()
        thread.join()
        if thread.failures:  # type: ignore[attr-defined]
            raise thread.failures[0]  # type: ignore[attr-defined]

    def end(self, *, kill: bool) -> None:
        assert self.broker is not None
        if kill:
            self.broker.kill()
            self.outputs.append(self.broker.output())
            return
        code = self.broker.stop()
        self.struck = self.struck or self.disk.hits() > 0
        if code != 0:
            self.note_end(self.broker, started=True)
        self.outputs.append(self.broker.output())

    def give_up(self) -> None:
        """Leave nothing behind: hundreds of lives share one process."""
        for broker in self.brokers:
            broker.close()
        self.disk.close()

    # What the clients do; each returns when it is done, however often that takes.

    def run(self) -> None:
        for name, config in TOPICS.items():
            self.create(name, config)
        self.write("plain", [b"plain %d" % number for number in range(8)])
        self.transactions()
        self.commit_offsets()
        self.write("compacted", [b"compacted %d" % number for number in range(8)], keys=2)
        self.write("short", [b"short %d" % number for number in range(4)])
        self.create("passing", {})
        self.write("passing", [b"passing"])
        self.delete("passing")
        self.housekeeping()
        self.write("plain", [b"plain %d" % number for number in range(8, 12)])

    def retry(self, work: Callable[[], Any], fine: tuple[int, ...] = ()) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while True:
            try:
                work()
                return
            except KafkaException as wrong:
                if wrong.args[0].code() in fine:
                    return
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100})

    def create(self, name: str, config: dict[str, str]) -> None:
        admin = self.admin()
        topic = NewTopic(name, num_partitions=1, replication_factor=1, config=config)

        def ask() -> None:
            admin.create_topics([topic], request_timeout=5)[name].result()

        self.retry(ask, fine=(KafkaError.TOPIC_ALREADY_EXISTS,))

    def delete(self, name: str) -> None:
        admin = self.admin()

        def ask() -> None:
            admin.delete_topics([name], request_timeout=5)[name].result()

        self.retry(ask, fine=(KafkaError.UNKNOWN_TOPIC_OR_PART,))

    def next_time(self) -> int:
        self.clock_ms += 1_000  # each record is a segment's age later than the one before
        return self.clock_ms

    def write(self, topic: str, values: list[bytes], *, keys: int = 0) -> None:
        """As an idempotent producer, which gives up on nothing."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, **EASY})
        failures: list[str] = []

        def heard(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(str(error))

        for number, value in enumerate(values):
            key = b"key %d" % (number % keys) if keys else None
            producer.produce(topic, value, key, partition=0, timestamp=self.next_time(), on_delivery=heard)
        left = producer.flush(WAIT_S_MAX)
        assert (left, failures) == (0, []), f"{topic}: {left} not sent, {failures[:2]}"

    def transactions(self) -> None:
        """By turns committed and aborted; one that fails for reasons of the disk is begun again."""
        producer: Producer | None = None
        for number in range(4):
            commit, values = number % 2 == 0, [b"txn %d %d" % (number, part) for part in range(2)]
            attempt = 0
            deadline = time.monotonic() + WAIT_S_MAX
            while True:
                attempt += 1
                tried = [b"%s try %d" % (value, attempt) for value in values]
                try:
                    producer = producer or self.transactional()
                    producer.begin_transaction()
                    for value in tried:
                        producer.produce("txn", value, partition=0, timestamp=self.next_time())
                    if not commit:
                        assert producer.flush(WAIT_S_MAX) == 0
                        self.aborted.update(tried)
                        producer.abort_transaction(WAIT_S_MAX)
                    else:
                        producer.commit_transaction(WAIT_S_MAX)
                    break
                except KafkaException as wrong:
                    if time.monotonic() > deadline:
                        raise
                    producer = self.after(wrong, producer, tried)

    def after(self, wrong: KafkaException, producer: Producer | None, tried: list[bytes]) -> Producer | None:
        error = wrong.args[0]
        if producer is not None and error.txn_requires_abort():
            self.aborted.update(tried)
            try:
                producer.abort_transaction(WAIT_S_MAX)
            except KafkaException:
                return None
            return producer
        time.sleep(0.05)
        return None  # its successor's initialisation ends what it left open

    def transactional(self) -> Producer:
        patience = {key: value for key, value in EASY.items() if key != "message.timeout.ms"}
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": TRANSACTIONAL_ID, **patience})
        producer.init_transactions(WAIT_S_MAX)
        return producer

    def consumer(self, **settings: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap, "group.id": GROUP, "enable.auto.commit": False, "log_level": 0,
                "reconnect.backoff.max.ms": 100, **settings,
            }
        )  # fmt: skip

    def commit_offsets(self) -> None:
        consumer = self.consumer()
        offsets = [TopicPartition("plain", 0, 5)]
        self.retry(lambda: consumer.commit(offsets=offsets, asynchronous=False))
        consumer.close()

    def housekeeping(self) -> None:
        """Wait until old segments went, the log was compacted and checkpoints were written, if the fault lets them."""
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline:
            gone = not (self.data / "short-0" / f"{0:020d}.log").exists()
            if gone and all(
                (self.data / f"{name}-checkpoint").exists() for name in ("cleaner-offset", "recovery-point-offset")
            ):
                return
            time.sleep(0.02)

    # What must hold in the end.

    def check(self) -> None:
        plain = [each.value for each in read_partition(self.bootstrap, "plain", log_level=0)]
        assert plain == [b"plain %d" % number for number in range(12)], plain
        committed = [each.value for each in self.committed() if each.value is not None]
        assert not self.aborted.intersection(committed), self.aborted.intersection(committed)
        tries: dict[bytes, set[bytes]] = {}
        for value in committed:
            name, _, attempt = value.partition(b" try ")
            tries.setdefault(name, set()).add(attempt)
        assert sorted(tries) == [b"txn %d %d" % (number, part) for number in (0, 2) for part in (0, 1)], committed
        for number in (0, 2):  # whole or not at all; a commit whose answer was lost may have been made twice
            assert tries[b"txn %d 0" % number] == tries[b"txn %d 1" % number], committed
        assert len(committed) == len(set(committed)), committed
        latest = {each.key: each.value for each in read_partition(self.bootstrap, "compacted", log_level=0)}
        assert latest == {b"key 0": b"compacted 6", b"key 1": b"compacted 7"}, latest
        consumer = self.consumer()
        (offset,) = consumer.committed([TopicPartition("plain", 0)], WAIT_S_MAX)
        consumer.close()
        assert offset.offset == 5, offset
        assert "passing" not in self.admin().list_topics(timeout=WAIT_S_MAX).topics
        traces = [output for output in self.outputs if "Traceback" in output]
        assert not traces, traces[0]

    def committed(self) -> list[Any]:
        """All that readers of committed records can have: the last stable offset must be the end, or this waits."""
        settings: dict[str, Any] = {"log_level": 0, "isolation.level": "read_committed"}
        return read_partition(self.bootstrap, "txn", 0, **settings)


@dataclass(frozen=True)
class Ended:
    """What a life left behind: for the cases of which only the next start is the point."""

    data: Path
    aborted: frozenset[bytes]


def live(folder: Path, case: Case | None = None, *, kill: bool = False) -> tuple[Life, Traces]:
    """One whole life with one fault; without a case the calls of each phase are noted, and its data kept."""
    folder.mkdir()
    disk = FailingDisk(folder, root=folder / "data")
    life = Life(folder, disk)
    traces: Traces = {}
    steps: dict[str, Callable[[], None]] = {
        "start": life.start,
        "run": lambda: supervised(life),
        "stop": lambda: life.end(kill=kill),
        "recovery" if kill else "restart": life.start,
    }
    try:
        for phase, step in steps.items():
            if case is None:
                disk.trace()
            elif case.phase == phase:
                case.arm(disk, life.data)
            step()
            life.struck = life.struck or disk.hits() > 0
            disk.heal()
            if case is None:
                traces[phase] = disk.traced()[sum(map(len, traces.values())) :]
                if phase == "stop":
                    shutil.copytree(life.data, folder / "ended")
        life.check()
    finally:
        life.give_up()
    return life, traces


def live_on(folder: Path, case: Case, ended: Ended) -> Life:
    """A start on what a life left behind, with one fault."""
    folder.mkdir()
    disk = FailingDisk(folder, root=folder / "data")
    life = Life(folder, disk)
    shutil.copytree(ended.data, life.data)
    life.aborted.update(ended.aborted)
    try:
        case.arm(disk, life.data)
        life.start()
        life.struck = life.struck or disk.hits() > 0
        disk.heal()
        life.check()
    finally:
        life.give_up()
    return life


class Matrix:
    def __init__(self, folder: Path) -> None:
        """From a life that ends cleanly, and from one that is killed, of which only the start after it is another."""
        self.folder = folder
        clean, traces = live(folder / "clean")
        killed, after_kill = live(folder / "killed", kill=True)
        traces["recovery"] = after_kill["recovery"]
        self.ended = {
            "restart": Ended(folder / "clean" / "ended", frozenset(clean.aborted)),
            "recovery": Ended(folder / "killed" / "ended", frozenset(killed.aborted)),
        }
        self.cases = list(cases(traces))

    def outcome(self, name: str, case: Case) -> Life:
        place = self.folder / name
        try:
            if case.phase in self.ended:
                return live_on(place, case, self.ended[case.phase])
            return live(place, case, kill=case.phase == "run" and case.skip > 0)[0]
        finally:
            shutil.rmtree(place, ignore_errors=True)


def supervised(life: Life) -> None:
    thread = life.supervise()
    try:
        life.run()
    finally:
        life.end_supervision(thread)
