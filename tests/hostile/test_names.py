"""Topic names that would leave the log directory, or not fit into it."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, MetadataRequest
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.metadata import MetadataRequestTopic
from tests.differential.batches import batch
from tests.hostile.attacker import Attacker
from tests.hostile.siege import Victim, fetch_request, produce_request, unharmed

NAMES = ["..", ".", "", "a/b", "../../etc/x", "/etc/x", "a\0b", "a\\b", "x" * 250, "x" * 30_000, "é", "a b", "a\nb"]


def everything_under(victim: Victim) -> set[str]:
    return {str(path) for path in victim.broker.data_dir.parent.rglob("*") if path.is_dir()}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:12]))
def test_a_bad_name_is_refused_everywhere(victim: Victim, name: str) -> None:
    folders = everything_under(victim)
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    with unharmed(victim), Attacker(victim.address) as attacker:
        made = attacker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        assert made.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert attacker.ask(asked, 9).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        sent = attacker.ask(produce_request(name, batch([b"x"], timestamp=0)), 9)
        assert sent.responses[0].partition_responses[0].error_code != ErrorCode.NONE
        read = attacker.ask(fetch_request(name), 12)
        assert read.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        gone = attacker.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5_000), 5)
        assert gone.responses[0].error_code != ErrorCode.NONE
    assert everything_under(victim) == folders


def test_a_thousand_unknown_topics_in_one_fetch(victim: Victim) -> None:
    topics = [fetch_request(f"unknown-{index}").topics[0] for index in range(1_000)]
    with unharmed(victim), Attacker(victim.address) as attacker:
        answer = attacker.ask(FetchRequest(max_wait_ms=0, topics=topics), 12)
        assert len(answer.responses) == 1_000
