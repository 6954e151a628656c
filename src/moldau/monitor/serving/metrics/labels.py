"""What writers of metrics have in common: names as they stand in labels, and what is read of groups over and over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from moldau.core.exposition import escaped
from moldau.core.ids import TopicPartition
from moldau.monitor.judging import Judged
from moldau.monitor.rules import GroupVerdict, PartitionVerdict
from moldau.monitor.serving.metrics.book import Book

Write = Callable[[Book, "Page"], None]


@dataclass(slots=True)
class Page:
    """One cluster's judged look, as it is written down."""

    cluster: str
    """Escaped."""
    alone: str
    """`cluster="..",` where several are watched; else nothing."""
    judged: Judged
    _escaped: dict[str, str] = field(default_factory=dict)

    def shown(self, text: str) -> str:
        """Escaped, which happens once for each name."""
        found = self._escaped.get(text)
        if found is None:
            found = self._escaped[text] = escaped(text)
        return found

    def committed(self, group: GroupVerdict) -> Iterator[tuple[PartitionVerdict, int]]:
        """The partitions that the group has an offset of."""
        offsets = self.judged.committed.get(group.group)
        if offsets:
            for each in group.partitions:
                offset = offsets.get(TopicPartition(each.topic, each.partition))
                if offset is not None:
                    yield each, offset
