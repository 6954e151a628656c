"""A request of thousands of elements gets the answers that as many small ones would, and holds nobody up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import moldau
from moldau.broker.handlers.table import TABLE
from moldau.core.errors import ErrorCode
from moldau.core.limits import LARGE_REQUEST_BYTES, REQUEST_ELEMENTS_MAX
from moldau.wire.codec import encode
from moldau.wire.messages import (
    ApiVersionsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from moldau.wire.messages.fetch import ForgottenTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.registry import RESPONSES
from moldau.wire.schema import fields_of
from tests.hostile.attacker import CLOSED, Attacker, framed, header
from tests.hostile.siege import KEPT, Victim, fetch_request

COUNT = 3_000


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    with moldau.run(overrides={"auto.create.topics.enable": "false"}) as broker:
        attacked = Victim(broker)
        attacked.create(KEPT)
        assert attacked.produce(KEPT, attacked.kept_records) == 0
        yield attacked


def names(count: int = COUNT) -> list[str]:
    return [f"a-topic-that-is-not-there-{index}" for index in range(count)]


def test_what_is_answered_in_parts_is_there() -> None:
    """Each row of the table that is cut names an array of its request and one of its answer."""
    responses = {response.API_KEY: response for response in RESPONSES}
    cut = [row for row in TABLE if row.parts]
    assert len(cut) > 5
    for row in cut:
        for asked, answered in row.parts:
            arrays = {field.name for field in fields_of(row.request) if field.is_array}
            results = {field.name for field in fields_of(responses[row.key]) if field.is_array}
            assert (asked in arrays, answered in results) == (True, True), row


def test_every_element_is_answered_in_order(victim: Victim) -> None:
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in [*names(), KEPT]]
    request = DescribeConfigsRequest(resources=resources)
    assert len(encode(request, 4)) > LARGE_REQUEST_BYTES
    with Attacker(victim.address) as client:
        results = client.ask(request, 4).results
    assert [result.resource_name for result in results] == [*names(), KEPT]
    assert {result.error_code for result in results[:-1]} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert results[-1].error_code == ErrorCode.NONE
    assert len(results[-1].configs) > 20


@pytest.mark.parametrize("version", [1, 6])
def test_deleting_many(victim: Victim, version: int) -> None:
    if version == 1:
        request = DeleteTopicsRequest(topic_names=names(), timeout_ms=20_000)
    else:
        topics = [DeleteTopicState(name=name) for name in names()]
        request = DeleteTopicsRequest(topics=topics, timeout_ms=20_000)
    with Attacker(victim.address) as client:
        answered = client.ask(request, version).responses
    assert [each.error_code for each in answered] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * COUNT


def test_metadata_of_many_names_what_is_there_first(victim: Victim) -> None:
    asked = [MetadataRequestTopic(name=name) for name in [*names(), KEPT]]
    with Attacker(victim.address) as client:
        topics = client.ask(MetadataRequest(topics=asked), 9).topics
    assert [topic.name for topic in topics] == [KEPT, *names()]


def test_list_offsets_of_many(victim: Victim) -> None:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [ListOffsetsTopic(name=name, partitions=partitions) for name in [*names(), KEPT]]
    with Attacker(victim.address) as client:
        answered = client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 5).topics
    assert [topic.name for topic in answered] == [*names(), KEPT]
    assert answered[-1].partitions[0].offset == 2


def test_a_large_fetch_waits_and_answers(victim: Victim) -> None:
    """Its answer comes by another way than a future."""
    request = fetch_request(KEPT, wait_ms=200)
    request.topics[0].partitions[0].fetch_offset = 2
    request.forgotten_topics_data = [ForgottenTopic(topic=name) for name in names()]
    assert len(encode(request, 12)) > LARGE_REQUEST_BYTES
    with Attacker(victim.address) as client:
        began = time.monotonic()
        (topic,) = client.ask(request, 12).responses
        assert time.monotonic() - began >= 0.19
    assert (topic.partitions[0].error_code, len(topic.partitions[0].records)) == (ErrorCode.NONE, 0)


def test_the_same_question_again_and_again_is_refused_over_all_parts(victim: Victim) -> None:
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name=f"{KEPT}-{index % 50}") for index in range(9_000)
    ]
    with Attacker(victim.address) as client:
        assert client.ask(DescribeConfigsRequest(resources=resources), 4) == CLOSED


def test_a_large_request_that_is_no_message_is_refused(victim: Victim) -> None:
    request = encode(FindCoordinatorRequest(key_type=0, coordinator_keys=names()), 4)
    printed = len(victim.broker.output())
    with Attacker(victim.address) as client:
        client.send(framed(header(10, 4, flexible=True) + request[:-40_000]))
        assert client.answer() == CLOSED
    assert "FIND_COORDINATOR v4, correlation id 1" in victim.broker.output()[printed:]


def test_more_elements_than_a_request_may_have(victim: Victim) -> None:
    with Attacker(victim.address) as client:
        names_too_many = [MetadataRequestTopic(name="") for _ in range(REQUEST_ELEMENTS_MAX + 1)]
        assert client.ask(MetadataRequest(topics=names_too_many), 9) == CLOSED


def test_another_client_is_answered_meanwhile(victim: Victim) -> None:
    """While one request of fifty thousand elements is answered, small ones are answered many times."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=str(index)) for index in range(49_000)]
    answered = threading.Event()

    def ask() -> None:
        with Attacker(victim.address) as client:
            client.ask(DescribeConfigsRequest(resources=resources), 4)
        answered.set()

    asking = threading.Thread(target=ask)
    asking.start()
    with Attacker(victim.address) as other:
        count, deadline = 0, time.monotonic() + 20
        while not answered.is_set() and time.monotonic() < deadline:
            assert other.ask(ApiVersionsRequest(), 0).api_keys
            count += 1
    asking.join()
    assert count > 20
