"""A follower's half of a fetch session (KIP-227): only what changed goes to the leader.

What a leader knows of a session is what it was sent. Whatever is not certain begins a new one, with everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from moldau.core.ids import TopicId
from moldau.replication.follower import Position
from moldau.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION = 0
NEW_SESSION_EPOCH = 0
INT32_MAX = 2**31 - 1

Key: TypeAlias = tuple[TopicId, int]


class LeaderSession:
    """One session with one leader. `known` is what the leader has been told."""

    __slots__ = ("_epoch", "_id", "known")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = NEW_SESSION_EPOCH
        self.known: dict[Key, Position] = {}

    @property
    def is_open(self) -> bool:
        return self._id != NO_SESSION and self._epoch != NEW_SESSION_EPOCH

    def ask(self, changed: Iterable[tuple[Key, Position]], gone: Iterable[Key], *, bytes_max: int) -> FetchRequest:
        """The partitions that are new or moved, and those that are to be left out from now on.

        The caller sees to it that a session that is not open gets all of them.
        """
        topics: dict[TopicId, FetchTopic] = {}
        for key, position in changed:
            topic_id, index = key
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
            self.known[key] = position
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.offset,
                    last_fetched_epoch=position.last_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=bytes_max,
                )
            )
        forgotten: dict[TopicId, ForgottenTopic] = {}
        for topic_id, index in gone:
            if self.known.pop((topic_id, index), None) is not None and self.is_open:
                row = forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[]))
                row.partitions.append(index)
        return FetchRequest(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def answered(self, session_id: int) -> None:
        """The leader answered without an error; an id of zero says that it has no room for a session."""
        if session_id == NO_SESSION:
            self._id = NO_SESSION
            self._epoch = NEW_SESSION_EPOCH
            return
        self._epoch = 1 if session_id != self._id or self._epoch == INT32_MAX else self._epoch + 1
        self._id = session_id

    def reset(self) -> None:
        """Begin anew, and let the leader forget the old session: nobody knows what it has heard."""
        self._epoch = NEW_SESSION_EPOCH
        self.known.clear()
