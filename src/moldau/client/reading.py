"""Records of assigned partitions, without a group: a thread with a connection of its own reads from each leader.

No coordinator is asked for, so that nothing is created by reading. What passes by itself (a leader that moves, a broker
that is away for a while) is waited for; the caller hears of the rest. What is made of an answer is the caller's choice.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from moldau.client.cluster import Cluster, NoAnswer, NobodyListens, words_of
from moldau.client.connection import Connection, Unsupported
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

NAMED_TOPICS_VERSION = 12  # of Fetch; later ones know topics by ids
ANSWER_BYTES = 8 << 20
PARTITION_BYTES = 1 << 20
WAIT_MS = 500
ANSWERS_AHEAD = 4  # that wait to be taken: memory has a limit though the terminal is slow
RETRY_S = 0.25

READ_AGAIN = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.OFFSET_NOT_AVAILABLE,
}  # fmt: skip


T = TypeVar("T")
Decode: TypeAlias = Callable[[TopicPartition, PartitionData, int], tuple[T, int]]
"""What a caller wants of an answer from a position on, and the offset to go on at."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one question, as a consumer's settings have them."""

    answer_bytes: int = ANSWER_BYTES
    partition_bytes: int = PARTITION_BYTES
    bytes_min: int = 1
    wait_ms: int = WAIT_MS
    socket_bytes: int | None = None
    """Of the socket's buffer; None leaves it to the system."""


USUAL = Limits()


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """What came of one partition; `next_offset` passes what no reader sees, such as markers of transactions."""

    place: TopicPartition
    records: T
    next_offset: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A partition that gives nothing, and is read no more."""

    place: TopicPartition
    code: int
    damage: str = ""
    """Where and how, if a record is not what a record has to be: brokers look into few of them."""

    @property
    def told(self) -> str:
        return self.damage or words_of(self.code)


@dataclass(frozen=True, slots=True)
class Lost:
    """A leader that went away, or can't be reached."""

    why: Exception


class Leader(threading.Thread, Generic[T]):
    """Fetches from one broker until it is told to stop or the broker is lost."""

    def __init__(
        self,
        connection: Connection,
        positions: Mapping[TopicPartition, int],
        events: queue.Queue[tuple[Leader[T], Read[T] | Failed | Lost]],
        *,
        decode: Decode[T],
        isolation: int,
        limits: Limits,
    ) -> None:
        super().__init__(daemon=True)
        self.is_stopped = threading.Event()
        self.positions = dict(positions)
        self.unwanted: set[TopicPartition] = set()
        """Others add to it while the thread runs."""
        self._connection = connection
        self._events = events
        self._decode = decode
        self._isolation = isolation
        self._limits = limits

    def stop(self) -> None:
        self.is_stopped.set()
        self._connection.close()

    def run(self) -> None:
        try:
            while not self.is_stopped.is_set() and self._forget_unwanted():
                answer = self._connection.ask(self._request(), FetchResponse, version_max=NAMED_TOPICS_VERSION)
                if answer.error_code != ErrorCode.NONE:
                    raise ConnectionError(ErrorCode(answer.error_code).message)
                for topic in answer.responses:
                    for data in topic.partitions:
                        self._take(TopicPartition(topic.topic, data.partition_index), data)
        except (OSError, ProtocolViolation, ApiError, Unsupported, ValueError) as wrong:
            # A socket that was closed under the thread says ValueError.
            self._tell(Lost(wrong))

    def _forget_unwanted(self) -> bool:
        for place in [*self.unwanted]:
            self.positions.pop(place, None)
        return bool(self.positions)

    def _request(self) -> FetchRequest:
        limits = self._limits
        topics: dict[str, list[FetchPartition]] = {}
        for (topic, partition), offset in self.positions.items():
            asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=limits.partition_bytes)
            topics.setdefault(topic, []).append(asked)
        return FetchRequest(
            max_wait_ms=limits.wait_ms,
            min_bytes=limits.bytes_min,
            max_bytes=limits.answer_bytes,
            isolation_level=self._isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
        )

    def _take(self, place: TopicPartition, data: PartitionData) -> None:
        position = self.positions.get(place)
        if position is None:
            raise ProtocolViolation(f"an answer about {place}, which was not asked for")
        if data.error_code != ErrorCode.NONE:
            del self.positions[place]
            self._tell(Failed(place, data.error_code))
            return
        try:
            records, next_offset = self._decode(place, data, position)
        except (ApiError, ProtocolViolation) as wrong:  # asked again, it is as it is
            del self.positions[place]
            self._tell(_damaged(place, wrong, position))
            return
        if next_offset > position:
            # Behind the others, which the next answer has room for.
            del self.positions[place]
            self.positions[place] = next_offset
            self._tell(Read(place, records, next_offset))

    def _tell(self, event: Read[T] | Failed | Lost) -> None:
        while not self.is_stopped.is_set():
            try:
                self._events.put((self, event), timeout=RETRY_S)
            except queue.Full:
                continue
            return


def _damaged(place: TopicPartition, wrong: ApiError | ProtocolViolation, position: int) -> Failed:
    code, why = ErrorCode.CORRUPT_MESSAGE, str(wrong)
    if isinstance(wrong, ApiError):
        code, why = wrong.code, wrong.message
    return Failed(place, code, f"what is at offset {position} is damaged: {why}")


class Reader(Generic[T]):
    """Whoever opens it closes it. Positions only move with what the caller took."""

    def __init__(self, cluster: Cluster, *, decode: Decode[T], isolation: int, limits: Limits = USUAL) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.lost: NobodyListens | None = None
        """Why nobody can be asked, as long as that is so."""
        self._cluster = cluster
        self._decode = decode
        self._isolation = isolation
        self._limits = replace(limits, wait_ms=max(1, min(limits.wait_ms, int(cluster.timeout_s * 500))))
        self._events: queue.Queue[tuple[Leader[T], Read[T] | Failed | Lost]] = queue.Queue(ANSWERS_AHEAD)
        self._leaders: dict[Leader[T], set[TopicPartition]] = {}
        self._try_again_s = 0.0

    def add(self, positions: Mapping[TopicPartition, int]) -> None:
        self.positions |= positions
        self._try_again_s = 0.0

    def drop(self, places: Iterable[TopicPartition]) -> None:
        """Nothing more of them is given out; what a thread still reads of them is passed over."""
        for place in places:
            self.positions.pop(place, None)
            for leader, covered in self._leaders.items():
                covered.discard(place)
                leader.unwanted.add(place)

    def close(self) -> None:
        for leader in self._leaders:
            leader.stop()
        self._leaders.clear()

    def is_asking_for(self, place: TopicPartition) -> bool:
        """Whether its leader is known and was reached."""
        return any(place in places for places in self._leaders.values())

    def next(self, *, timeout_s: float) -> Read[T] | Failed | None:
        """None if nothing came in that time."""
        self._start_missing()
        try:
            leader, event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if leader not in self._leaders:
            return None
        match event:
            case Lost():
                leader.stop()
                del self._leaders[leader]
                return None
            case Failed(place, code):
                self._leaders[leader].discard(place)
                if code in READ_AGAIN or place not in self.positions:
                    return None
                self.positions.pop(place)
            case Read(place, _, next_offset) if place in self._leaders[leader]:
                self.positions[place] = next_offset
            case _:
                return None
        return event

    def _start_missing(self) -> None:
        for leader in [leader for leader, places in self._leaders.items() if not places]:
            leader.stop()
            del self._leaders[leader]
        covered: set[TopicPartition] = set().union(*self._leaders.values())
        missing = self.positions.keys() - covered
        if not missing or time.monotonic() < self._try_again_s:
            return
        self._try_again_s = time.monotonic() + RETRY_S
        try:
            led, _ = self._cluster.led(missing)
        except NobodyListens as wrong:
            self.lost = wrong
            return
        except NoAnswer:
            return
        for broker_id, places in led.items():
            self._start(broker_id, places)
        self.lost = None

    def _start(self, broker_id: int, places: Iterable[TopicPartition]) -> None:
        try:
            connection = self._cluster.new_connection(broker_id)
        except NoAnswer:
            return  # as long as the cluster says that it leads
        positions = {place: self.positions[place] for place in places}
        if self._limits.socket_bytes is not None:
            connection.buffer(self._limits.socket_bytes)
        leader = Leader(
            connection, positions, self._events, decode=self._decode, isolation=self._isolation, limits=self._limits
        )
        self._leaders[leader] = set(positions)
        leader.start()
