"""What went through the partitions of a broker, counted by topic since the start; only a broker with metrics counts."""

from __future__ import annotations


class TopicTraffic:
    """Of one topic: plain numbers, which the event loop adds to."""

    __slots__ = (
        "bytes_in", "bytes_out", "failed_fetches", "failed_produces", "fetches", "messages_in", "produces",
        "replicated_in", "replicated_out",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = self.replicated_in = self.replicated_out = 0
        self.produces = self.failed_produces = self.fetches = self.failed_fetches = 0

    @property
    def has_any(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)

    def add(self, other: TopicTraffic) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """By the names of topics that are there, so that whoever asks for others adds no name."""

    __slots__ = ("failed_isr_updates", "gone", "isr_expands", "isr_shrinks", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self.gone = TopicTraffic()
        """Of topics that were deleted, and of names that no topic has: it counts in the sum of all."""
        self.isr_expands = self.isr_shrinks = self.failed_isr_updates = 0

    def of(self, topic: str) -> TopicTraffic:
        """May be asked by the threads that open logs, each for topics of its own."""
        found = self.topics.get(topic)
        return self.topics.setdefault(topic, TopicTraffic()) if found is None else found

    def forget(self, topic: str) -> None:
        self.gone.add(self.topics.pop(topic))
