"""What responses say of success and failure: the error codes in them, and the records of those that have any."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeAlias, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

from moldau.core.errors import ErrorCode
from moldau.wire.messages import FetchResponse, ProduceResponse

NONE = int(ErrorCode.NONE)
ERROR_CODE = "error_code"

Walk: TypeAlias = Callable[[Any, list[int]], None]


class OfTopic(NamedTuple):
    """The part of a response that is about one topic, by its name or its id."""

    topic: str | bytes
    partitions: int
    size_bytes: int
    failed: int


class Outcome(NamedTuple):
    codes: list[int]
    """Each as often as it is there, NONE as well."""
    topics: list[OfTopic]


# As in Apache Kafka these are no failures of a broker: clients asked the wrong one, or for what can't be.
_NO_FAILED_PRODUCE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE,
    }
)  # fmt: skip
_NO_FAILED_FETCH = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.NONE,
    }
)  # fmt: skip


def outcome_of(response: Any) -> Outcome:
    kind = type(response)
    if kind is FetchResponse:
        return of_fetch(response)
    if kind is ProduceResponse:
        return of_produce(response)
    codes: list[int] = []
    walk = walk_of(cast("Hashable", kind))
    if walk is not None:
        walk(response, codes)
    return Outcome(codes or [NONE], [])


def of_fetch(response: FetchResponse) -> Outcome:
    codes, topics = [response.error_code], []
    for topic in response.responses:
        rows = topic.partitions
        found = [row.error_code for row in rows]
        size_bytes = sum([len(row.records) for row in rows if row.records is not None])
        failed = sum([code not in _NO_FAILED_FETCH for code in found]) if any(found) else 0
        topics.append(OfTopic(topic.topic or topic.topic_id, len(rows), size_bytes, failed))
        codes += found
    return Outcome(codes, topics)


def of_produce(response: ProduceResponse) -> Outcome:
    codes: list[int] = []
    topics = []
    for topic in response.responses:
        found = [row.error_code for row in topic.partition_responses]
        if any(found):
            failed = sum([code not in _NO_FAILED_PRODUCE for code in found])
            topics.append(OfTopic(topic.name or topic.topic_id, len(found), 0, failed))
        codes += found
    return Outcome(codes, topics)


@cache
def walk_of(kind: Hashable) -> Walk | None:
    """What gathers the error codes of such a message and of all within it; None where it has none."""
    assert isinstance(kind, type), "any class is hashable, which the cache has to be told"
    has_own = ERROR_CODE in getattr(kind, "__struct_fields__", ())
    within = [(name, walk) for name, each in parts_of(kind) if (walk := walk_of(cast("Hashable", each))) is not None]
    if not has_own and not within:
        return None

    def gather(message: Any, codes: list[int]) -> None:
        if has_own:
            codes.append(message.error_code)
        for name, walk in within:
            part = getattr(message, name)
            if isinstance(part, list):
                for each in part:
                    walk(each, codes)
            elif part is not None:
                walk(part, codes)

    return gather


def parts_of(kind: type) -> Iterable[tuple[str, type]]:
    """The fields that are messages, or lists of some."""
    for name, hint in get_type_hints(kind, include_extras=False).items():
        for each in _classes(hint):
            if name in kind.__struct_fields__:  # type: ignore[attr-defined]
                yield name, each


def _classes(hint: Any) -> Iterable[type]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    elif get_origin(hint) is not Annotated:
        for each in get_args(hint):
            yield from _classes(each)
