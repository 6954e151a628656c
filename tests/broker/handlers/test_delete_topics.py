from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from tests.broker.handlers.wire import Wire

UNKNOWN_ID = b"\x07" * 16
UNKNOWN_NAME = "This server does not host this topic-partition."
SINCE_MESSAGES = 5


def by_name(wire: Wire, version: int, *names: str, timeout_ms: int = 20_000) -> dict[str | None, DeletableTopicResult]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=each) for each in names], timeout_ms=timeout_ms)
    responses = wire.ask(request, version, DeleteTopicsResponse).responses
    assert len(responses) == len(set(names))
    return {each.name: each for each in responses}


def one(wire: Wire, state: DeleteTopicState) -> tuple[str | None, bytes, int, str | None]:
    request = DeleteTopicsRequest(topics=[state], timeout_ms=20_000)
    (result,) = wire.ask(request, 6, DeleteTopicsResponse).responses
    return result.name, result.topic_id, result.error_code, result.error_message


@pytest.mark.parametrize("version", range(1, 7))
def test_deleted_topics_are_gone(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name)
    found = by_name(wire, version, name, f"{name}-missing")
    assert {each: result.error_code for each, result in found.items()} == {
        name: ErrorCode.NONE,
        f"{name}-missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    message = found[f"{name}-missing"].error_message
    assert message == (UNKNOWN_NAME if version >= SINCE_MESSAGES else None)
    assert by_name(wire, version, name)[name].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_name_is_free_again_at_once(wire: Wire, name: str) -> None:
    first = wire.create_topic(name, 2)
    wire.produce(name, 1, "a")
    by_name(wire, 6, name)
    second = wire.create_topic(name, 2)
    assert second.topic_id != first.topic_id
    assert wire.produce(name, 1, "b") == 0


def test_by_id(wire: Wire, name: str) -> None:
    topic_id = wire.create_topic(name).topic_id
    assert one(wire, DeleteTopicState(topic_id=topic_id)) == (name, topic_id, ErrorCode.NONE, None)


def test_an_id_that_is_not_there(wire: Wire) -> None:
    assert one(wire, DeleteTopicState(topic_id=UNKNOWN_ID)) == (
        None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
    )  # fmt: skip


def test_neither_name_nor_id(wire: Wire) -> None:
    assert one(wire, DeleteTopicState()) == (
        None, ZERO_UUID, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
    )  # fmt: skip


def test_both_name_and_id(wire: Wire, name: str) -> None:
    topic_id = wire.create_topic(name).topic_id
    assert one(wire, DeleteTopicState(name=name, topic_id=topic_id)) == (
        name, topic_id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
    )  # fmt: skip


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_no_topic_can_have(wire: Wire, name: str) -> None:
    assert one(wire, DeleteTopicState(name=name)) == (
        name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_NAME
    )  # fmt: skip


@pytest.mark.parametrize("version", [1, 6])
def test_a_topic_that_is_named_twice_stays(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name)
    wire.create_topic(f"{name}-2")
    found = by_name(wire, version, name, name, f"{name}-2")
    assert {each: result.error_code for each, result in found.items()} == {
        name: ErrorCode.INVALID_REQUEST,
        f"{name}-2": ErrorCode.NONE,
    }
    assert found[name].error_message == ("Duplicate topic name." if version >= SINCE_MESSAGES else None)
    assert by_name(wire, version, name)[name].error_code == ErrorCode.NONE


def test_an_id_that_is_named_twice_stays(wire: Wire, name: str) -> None:
    topic_id = wire.create_topic(name).topic_id
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)] * 2, timeout_ms=20_000)
    (result,) = wire.ask(request, 6, DeleteTopicsResponse).responses
    assert (result.name, result.topic_id, result.error_code, result.error_message) == (
        None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id."
    )  # fmt: skip


def test_a_topic_that_is_named_by_name_and_by_id_stays(wire: Wire, name: str) -> None:
    topic_id = wire.create_topic(name).topic_id
    states = [DeleteTopicState(name=name), DeleteTopicState(topic_id=topic_id)]
    request = DeleteTopicsRequest(topics=states, timeout_ms=20_000)
    (result,) = wire.ask(request, 6, DeleteTopicsResponse).responses
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert by_name(wire, 6, name)[name].error_code == ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_gets_nothing(wire: Wire, name: str, timeout_ms: int) -> None:
    wire.create_topic(name)
    found = by_name(wire, 6, name, timeout_ms=timeout_ms)[name]
    assert (found.error_code, found.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert by_name(wire, 6, name)[name].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [1, 6])
def test_nothing_asked_nothing_answered(wire: Wire, version: int) -> None:
    assert by_name(wire, version) == {}
