"""When the first record was written that a group has not read: from it, lag in seconds is exact, with no interpolation.

A record is asked for once; as long as the group stays where it is, the answer stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moldau.client.cluster import Cluster, NoAnswer, Refused, words_of
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.monitor.sampling.batches import next_offset, records_from
from moldau.monitor.sampling.topics import Layout, fetched
from moldau.wire.messages.fetch import PartitionData

PARTITION_BYTES = 16 << 10  # most batches; a larger one comes when its partition is the first of a question
ANSWERS_PER_LOOK_MAX = 100  # for each broker; what is left is asked for by the next look
PLACES_PER_ANSWER_MAX = 500

Unread = tuple[TopicPartition, int]


@dataclass(slots=True)
class FirstUnread:
    """`times` has None where no record will be found: it can't be read, or there is nothing but markers."""

    times: dict[Unread, int | None] = field(default_factory=dict)
    asked_from: dict[Unread, int] = field(default_factory=dict)
    """Where to go on looking for those that nothing was found for yet."""

    def look(self, cluster: Cluster, known: Layout, wanted: Iterable[Unread], problems: list[str]) -> None:
        """Each one is a place and the offset that a group has there."""
        still = set(wanted)
        self.times = {each: time for each, time in self.times.items() if each in still and time is not None}
        self.asked_from = {each: at for each, at in self.asked_from.items() if each in still}
        missing = sorted(still - self.times.keys())
        for leader, places in known.by_leader(dict.fromkeys(place for place, _ in missing)).items():
            theirs = set(places)
            try:
                self._ask(cluster, known, leader, [each for each in missing if each[0] in theirs], problems)
            except (NoAnswer, Refused, ProtocolViolation) as wrong:
                problems.append(f"first unread records: {wrong}")

    def _ask(self, cluster: Cluster, known: Layout, leader: int, missing: list[Unread], problems: list[str]) -> None:
        for _ in range(ANSWERS_PER_LOOK_MAX):
            question: dict[TopicPartition, Unread] = {}
            for unread in missing:  # one offset of each partition at a time
                if len(question) < PLACES_PER_ANSWER_MAX:
                    question.setdefault(unread[0], unread)
            if not question:
                return
            offsets = {place: self.asked_from.get(unread, unread[1]) for place, unread in question.items()}
            done: set[Unread] = set()
            for place, data in fetched(cluster, known, leader, offsets, partition_bytes=PARTITION_BYTES):
                if self._answered(question[place], offsets[place], data, problems):
                    done.add(question[place])
            left = [each for each in missing if each not in done]
            # Those that were first and got nothing let others be first.
            waiting = set(question.values()) - done
            missing = [each for each in left if each not in waiting] + [each for each in left if each in waiting]
            if not done and not waiting:
                return

    def _answered(self, unread: Unread, at: int, data: PartitionData, problems: list[str]) -> bool:
        """Whether there is nothing more to ask."""
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and at < data.log_start_offset:
            self.asked_from[unread] = data.log_start_offset  # what was before it can't be read any more
            return False
        if data.error_code != ErrorCode.NONE:
            self.times[unread] = None
            problem = f"records of {unread[0].topic}: {words_of(data.error_code)}"
            if problem not in problems:
                problems.append(problem)
            return True
        try:
            return self._found(unread, at, data)
        except ApiError as wrong:  # damaged, or of a version that Kafka 4 does not write
            self.times[unread] = None
            problems.append(f"records of {unread[0]}: {wrong.message}")
            return True

    def _found(self, unread: Unread, at: int, data: PartitionData) -> bool:
        record = next(records_from(data, at), None)
        if record is not None:
            self.times[unread] = record.timestamp if record.timestamp >= 0 else None
            return True
        following = next_offset(data)
        if following is not None:
            self.asked_from[unread] = following
        if (following if following is not None else at) >= data.high_watermark:
            self.times[unread] = None
            return True
        return False


def lag_seconds(
    times: Mapping[Unread, int | None], place: TopicPartition, offset: int, end: int | None, now_ms: int
) -> float | None:
    if end is None:
        return None
    if offset >= end:
        return 0.0
    written_ms = times.get((place, offset))
    return None if written_ms is None else max(0, now_ms - written_ms) / 1_000
