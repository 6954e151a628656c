"""What Apache Kafka's options name partitions and times by."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable

from moldau.cli.failures import UsageError
from moldau.cli.parsing import whole
from moldau.cli.settling import TIMEOUT_S_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from moldau.core.ids import TopicPartition

_MS_MAX = round(TIMEOUT_S_MAX * 1_000)


def milliseconds(text: str) -> float:
    """In seconds, as our own tools wait."""
    return whole(1, _MS_MAX, "time in milliseconds")(text) / 1_000


def split_scopes(texts: Iterable[str]) -> tuple[list[TopicPartition], list[str]]:
    """The partitions that `topic:0,1` names, and the topics of which all are meant."""
    places: list[TopicPartition] = []
    topics: list[str] = []
    for text in texts:
        if ":" in text:
            places += named_places(text)
        else:
            topics.append(text)
    return places, topics


def named_places(text: str) -> list[TopicPartition]:
    from moldau.core.ids import TopicPartition

    topic, _, numbers = text.partition(":")
    if not topic or not numbers or ":" in numbers:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    return [TopicPartition(topic, partition_number(each, text)) for each in numbers.split(",") if each]


def partition_number(text: str, scope: str) -> int:
    try:
        return whole(0, 2**31 - 1, "partition")(text)
    except ArgumentTypeError:
        raise UsageError(f"Invalid partition '{text}' specified in topic arg '{scope}'") from None
