"""A broker with both coordinators, its disk, its network and its clients, run from one seed, with crashes anywhere."""

from __future__ import annotations

import asyncio
import logging
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeAlias
from zlib import crc32

from msgspec.structs import replace as replace_struct

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import ProducerId, TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.records import TransactionChanged, encode_fact
from moldau.transactions.transaction import SECOND_PROTOCOL, Transaction
from moldau.wire.batch import Record, build_batch
from tests.simulation.copiers import Attempted, Copier, vanish
from tests.simulation.disk import Crash, Disk, Fate, OnAppended
from tests.simulation.history import History
from tests.simulation.ledger import Claims, Commits, Owners
from tests.simulation.loop import VirtualLoop
from tests.simulation.members import Member
from tests.simulation.network import HUNG_UP, Network
from tests.simulation.node import Node
from tests.simulation.pipelines import ALONE, COMMITTERS, COUNTS, SHARED, SUBSCRIBERS, Kind, Pipeline
from tests.simulation.producers import Producer
from tests.simulation.readers import CommittedReader, Committer
from tests.simulation.subscribers import Subscriber
from tests.simulation.verdict import Verdict

CHAOS_S = 40.0
SETTLE_S = 60.0
COPY_S_MAX = 150.0  # of the calm that follows
EPOCH_MS = 1_700_000_000_000
NEARLY_USED_UP = (32_760, 32_764, 32_765)


AnyMember: TypeAlias = Member | Subscriber


class Violation(AssertionError):
    """A promise was broken."""


class World:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.loop = VirtualLoop()
        self.violations: list[str] = []
        self.is_calm = False
        self.is_over = False
        self.crashes = 0
        self.steps = 0
        self.node: Node | None = None
        self.claims = Claims(self.violate)
        self.history = History(self.violate, self.claims)
        self.owners = Owners(self.violate)
        self.commits = Commits(self.violate, self.owners)
        self.attempted: list[Attempted] = []
        self.producers: dict[tuple[int, int], Producer] = {}
        """Whom an epoch of a producer id was given to."""
        self.digest = 0
        self.verdict = Verdict(self)
        self._kinds = {
            SHARED.group_id: self.random.choice(list(Kind)),
            COMMITTERS: self.random.choice([Kind.CLASSIC, Kind.CLASSIC, Kind.MIXED]),
            SUBSCRIBERS: Kind.NEW,
        }
        self.crash_every_steps = self.random.choice([60, 250, 1_000, 5_000])
        self.crash_every_writes = self.random.choice([20, 60, 200, 1_000])
        plain = replace(TopicConfig.defaults(), segment_bytes=self.random.choice([8_000, 1 << 20]))
        compacted = replace(
            plain.override({"cleanup.policy": "compact"}), delete_retention_ms=self.random.choice([1_000, 86_400_000])
        )
        internal = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
        self.disk = Disk(folder, {name: compacted if name in internal else plain for name in COUNTS}, COUNTS)
        self.group_limits = GroupLimits(initial_rebalance_delay_ms=500)
        self.consumer_config = ConsumerGroupConfig(session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
        version = SECOND_PROTOCOL if self.random.random() < 0.8 else self.random.choice([0, 1])
        self.transaction_limits = TransactionLimits(
            transaction_version=version,
            id_expiration_ms=self.random.choice([10_000, 604_800_000]),
            expiry_interval_ms=3_000,
        )
        self.network = Network(self, loss=self.random.choice([0.0, 0.02, 0.1]))
        outputs = [each for each in self.disk.partitions if each.topic in (SHARED.target, ALONE.target)]
        self.reader = CommittedReader(self, outputs)
        self._numbers = 0
        self._producer_ids = 1_000
        self._tasks: list[asyncio.Task[Any]] = []
        self._leader_epoch = 0
        self._clock_shift_ms = 0
        self._outside = copy_context()

    def violate(self, what: str) -> None:
        self.violations.append(f"{self.loop.time():.3f} s, {self.crashes} crashes: {what}")
        self.loop.stop()

    def now_ms(self) -> int:
        return EPOCH_MS + self._clock_shift_ms + int(self.loop.time() * 1000)

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    async def next_producer_id(self) -> ProducerId:
        await asyncio.sleep(self.random.choice([0.0, 0.0, 0.01]))
        self._producer_ids += 1
        return ProducerId(self._producer_ids)

    def dies_now(self) -> bool:
        self.steps += 1
        self.check_readable_ends()
        return not self.is_calm and self.random.random() * self.crash_every_steps < 1

    def fate_of_write(self) -> Fate:
        if self.is_calm or self.random.random() * self.crash_every_writes >= 1:
            return Fate.WRITTEN
        return self.random.choice([Fate.BEFORE, Fate.TORN, Fate.AFTER, Fate.AFTER, Fate.REFUSED, Fate.REFUSED])

    def on_appended(self) -> OnAppended:
        return self._on_appended

    def _on_appended(self, partition: TopicPartition, batch: memoryview) -> None:
        self.digest = crc32(batch, crc32(str(partition).encode(), self.digest))
        self.history.on_appended(partition, batch)

    def has_died(self, node: Node) -> None:
        self.crashes += 1
        self.node = None
        answers = list(node.answers.values())
        node.answers.clear()
        self._outside.run(self._after_death, node, answers)

    def _after_death(self, node: Node, answers: list[asyncio.Future[Any]]) -> None:
        for answer in answers:
            if not answer.done():
                answer.set_result(HUNG_UP)
        self.loop.call_later(self.random.choice([0.01, 0.2, 1, 5]), self._restart, node)

    def _restart(self, old: Node | None) -> None:
        if old is not None:
            old.bury()
        self._leader_epoch += self.random.choice([0, 0, 1])
        self._clock_shift_ms += self.random.choice([0, 0, -2_000, 1_500])
        self.node = Node(self, self._leader_epoch)
        self.node.start()

    def check_readable_ends(self) -> None:
        node = self.node
        if node is None or node.is_dead:
            return
        for partition, known in self.history.partitions.items():
            if known.open and node.partitions[partition].last_stable_offset > min(known.open.values()):
                self.violate(f"{partition} is read to {node.partitions[partition].last_stable_offset}: {known.open}")

    def is_copied(self, pipeline: Pipeline) -> bool:
        offsets = self.history.offsets
        places = [(pipeline.group_id, pipeline.source, index) for index in range(pipeline.source_count)]
        return all(place in offsets and offsets[place].offset == pipeline.records for place in places)

    def run(self) -> None:
        """Raises Violation."""
        asyncio.set_event_loop(None)
        self.loop.set_exception_handler(self._on_exception)
        handler = _Complaints(self.violate)
        logging.getLogger("moldau").addHandler(handler)
        try:
            main = self.loop.create_task(self._main())
            main.add_done_callback(lambda _: self.loop.stop())
            self.loop.run_forever()
            if not self.violations and not main.cancelled():
                main.result()
            self._clear_up()
        finally:
            logging.getLogger("moldau").removeHandler(handler)
            self.loop.close()
        if self.violations:
            raise Violation(self.violations[0])

    def _clear_up(self) -> None:
        self.is_calm = True
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        if self.node is not None:
            self.node.is_dead = True
        self.loop.call_later(1, self.loop.stop)
        self.loop.run_forever()
        if self.node is not None:
            self.node.bury()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        wrong = context.get("exception")
        if not isinstance(wrong, Crash):
            self.violate(f"{context.get('message')}: {wrong!r}")

    async def _main(self) -> None:
        await self._begin()
        await asyncio.sleep(CHAOS_S)
        self.is_calm = True
        deadline_s = self.loop.time() + COPY_S_MAX
        while not (self.is_copied(SHARED) and self.is_copied(ALONE)):
            await asyncio.sleep(1)
            if self.loop.time() > deadline_s:
                self.violate(f"not everything was copied: {self.history.offsets}")
                return
        await asyncio.sleep(max(0.0, CHAOS_S + SETTLE_S - self.loop.time()))
        self.verdict.check_shared_out()
        self.is_over = True
        await asyncio.sleep(35)  # longer than any session or transaction lasts
        while await self.reader.poll():
            pass
        self.verdict.check_end(self._tasks)
        if self.node is not None:
            self.node.die()  # what is loaded must be the same
        await asyncio.sleep(10)
        self.verdict.check_end(self._tasks)

    async def _begin(self) -> None:
        self.is_calm = True
        self._restart(None)
        self._fill()
        self.is_calm = False
        for place in range(3):
            self._spawn(self._keep_running(SHARED, place))
        for place in range(ALONE.source_count):
            self._spawn(self._keep_running(ALONE, place))
        for _ in range(self.random.randint(2, 3)):
            self._spawn(self._keep_committing(COMMITTERS))
        for _ in range(self.random.randint(1, 3)):
            self._spawn(self._keep_committing(SUBSCRIBERS))
        for number in range(self.random.randint(0, 2)):
            self._spawn(vanish(self, f"gone-{number}", SHARED, is_second=self._choose_protocol()))
        self._spawn(self.reader.run())
        self._spawn(self._operate())

    def _fill(self) -> None:
        """Inputs, and transactional ids whose epochs are nearly used up."""
        node = self.node
        assert node is not None
        for pipeline in (SHARED, ALONE):
            for index in range(pipeline.source_count):
                values = [pipeline.value(index, offset).encode() for offset in range(pipeline.records)]
                batch = build_batch([Record(at, 0, None, value) for at, value in enumerate(values)])
                partition = node.partitions[TopicPartition(pipeline.source, index)]
                partition.append(memoryview(batch), now_ms=self.now_ms())
        for pipeline, places in ((SHARED, 3), (ALONE, ALONE.source_count)):
            for place in range(places):
                if self.random.random() < 0.3:
                    self._use_up(node, f"{pipeline.group_id}-{place}")

    def _use_up(self, node: Node, transactional_id: str) -> None:
        self._producer_ids += 1
        before = Transaction(
            transactional_id,
            ProducerId(self._producer_ids),
            epoch=self.random.choice(NEARLY_USED_UP),
            timeout_ms=5_000,
            updated_ms=self.now_ms(),
        )
        entry = encode_fact(TransactionChanged(before), self.transaction_limits.transaction_version)
        partition = node.partitions[
            TopicPartition(TRANSACTION_STATE_TOPIC, node.services.transactions.index_of(transactional_id))
        ]
        batch = build_batch([Record(0, self.now_ms(), *entry)])
        partition.append_own(memoryview(batch), now_ms=self.now_ms())

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = self.loop.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.violate(f"a client failed: {task.exception()!r}")

    async def _operate(self) -> None:
        """What happens to a broker that does not crash: logs are compacted, and now and then it is restarted."""
        while not self.is_calm:
            await asyncio.sleep(self.random.choice([1, 3, 9]))
            node = self.node
            if node is None or node.is_dead:
                continue
            choice = self.random.random()
            if choice < 0.1:
                self.transaction_limits = replace_struct(self.transaction_limits, transaction_version=SECOND_PROTOCOL)
                node.services.transactions.limit(self.transaction_limits)
            elif choice < 0.7:
                node.compact()
            else:
                self.node = None  # nobody can connect any more
                node.stop()

    async def _keep_committing(self, group_id: str) -> None:
        """A member that commits; when it is killed, another one comes."""
        while not self.is_over:
            running = self._spawn(Committer(self, group_id, SHARED.source).run())
            await asyncio.wait([running], timeout=self.random.choice([5, 20, 60]))
            if self.is_calm:
                return
            running.cancel()
            await asyncio.sleep(self.random.choice([0, 1, 8]))

    def kind_of(self, group_id: str) -> Kind:
        return self._kinds[group_id]

    def new_member(self, group_id: str, topic: str, instance_id: str | None) -> AnyMember:
        kind = self._kinds[group_id]
        if kind is Kind.CLASSIC or (kind is Kind.MIXED and self.random.random() < 0.5):
            return Member(self, group_id, topic=topic, partition_count=COUNTS[topic], instance_id=instance_id)
        pattern = f"{topic[:3]}.*" if self.random.random() < 0.3 else None
        assignor = self.random.choice([None, "uniform", "range"])
        return Subscriber(self, group_id, topic=topic, instance_id=instance_id, pattern=pattern, assignor=assignor)

    def _choose_protocol(self) -> bool:
        """Whether a producer speaks the second protocol, which it may where the cluster does."""
        return self.transaction_limits.transaction_version >= SECOND_PROTOCOL and self.random.random() < 0.6

    async def _keep_running(self, pipeline: Pipeline, place: int) -> None:
        """Start a copier; kill it, or start another while it still runs, now and then."""
        transactional_id = f"{pipeline.group_id}-{place}"
        timeout_ms = self.random.choice([2_000, 6_000, 20_000])
        is_static = self.random.random() < 0.3
        while True:
            is_second = self._choose_protocol()
            producer = Producer(self, transactional_id, is_second=is_second, timeout_ms=timeout_ms)
            copier = Copier(self, pipeline, producer, place=place, is_static=is_static)
            running = self._spawn(copier.run())
            await asyncio.wait([running], timeout=self.random.choice([2, 5, 15, 60]))
            if self.is_calm:
                await asyncio.wait([running])
            if running.done():
                if running.exception() is not None or self.is_copied(pipeline):
                    return
            elif self.random.random() < 0.6:
                running.cancel()
            copier.is_replaced = True
            await asyncio.sleep(self.random.choice([0, 0.5, 4]))


class _Complaints(logging.Handler):
    """What the broker calls an error is one: nothing here can fail but what it must be able to bear."""

    def __init__(self, violate: Any) -> None:
        super().__init__(logging.WARNING)
        self._violate = violate

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("moldau.log") and record.levelno < logging.ERROR:
            return  # a torn tail is cut off, and that is said
        if "no space left on device" in record.getMessage():
            return
        self._violate(f"the broker said: {record.getMessage()} {record.exc_info or ''}")
