"""What the log says of topics: a line for each change, and one for thousands at once."""

from __future__ import annotations

import logging

import pytest

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.controller.topic_changes import log_topic_changes
from moldau.core.ids import TopicId

HERE = PartitionImage(replicas=(0,), isr=(0,), leader=0)


def image(topics: dict[str, int], *, generation: int = 0, changed: set[str] | None = None) -> ClusterImage:
    made = {
        name: TopicImage(name, TopicId(f"{name}{generation}".encode().rjust(16)), (HERE,) * count)
        for name, count in topics.items()
    }
    ids: dict[bytes, str] = {topic.id: name for name, topic in made.items()}
    return ClusterImage(topics=made, topic_ids=ids, changed_topics=frozenset(changed or topics))


def messages(caplog: pytest.LogCaptureFixture, old: ClusterImage, new: ClusterImage) -> list[str]:
    with caplog.at_level(logging.INFO):
        log_topic_changes(old, new)
    return caplog.messages


def test_a_created_topic(caplog: pytest.LogCaptureFixture) -> None:
    assert messages(caplog, image({}), image({"orders": 3})) == ["created topic orders: partitions=3"]


def test_a_deleted_topic_is_one_line_however_many_partitions_it_had(caplog: pytest.LogCaptureFixture) -> None:
    told = messages(caplog, image({"orders": 20}), image({}, changed={"orders"}))
    assert told == ["deleted topic orders: partitions=20"]


def test_a_topic_that_was_deleted_and_created_at_once(caplog: pytest.LogCaptureFixture) -> None:
    told = messages(caplog, image({"orders": 2}), image({"orders": 3}, generation=1))
    assert told == ["deleted topic orders: partitions=2", "created topic orders: partitions=3"]


def test_more_partitions(caplog: pytest.LogCaptureFixture) -> None:
    told = messages(caplog, image({"orders": 2}), image({"orders": 3}))
    assert told == ["topic orders grew from 2 to 3 partitions"]


def test_a_changed_configuration_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert messages(caplog, image({"orders": 2}), image({"orders": 2})) == []


def test_thousands_of_topics_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = messages(caplog, image({}), image({f"topic-{number:04}": 2 for number in range(3_000)}))
    assert told.startswith("created 3000 topics with 6000 partitions: topic-0000, topic-0001, ")
    assert len(told) < 400


def test_thousands_of_grown_topics_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"topic-{number}" for number in range(3_000)]
    told = messages(caplog, image(dict.fromkeys(names, 1)), image(dict.fromkeys(names, 2)))
    assert told == ["3000 topics have more partitions"]
