from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from moldau.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsPartition
from tests.broker.handlers.wire import Wire

SINCE_DISK_SIZES = 4


def ask(wire: Wire, asked: dict[str, list[int]] | None, *, version: int = 5) -> DescribeLogDirsResponse:
    topics = None
    if asked is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in asked.items()]
    return wire.ask(DescribeLogDirsRequest(topics=topics), version, DescribeLogDirsResponse)


def partitions(response: DescribeLogDirsResponse, name: str) -> list[DescribeLogDirsPartition]:
    (folder,) = response.results
    return [each for topic in folder.topics if topic.name == name for each in topic.partitions]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_sizes_of_the_partitions_that_are_asked_for(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name, 3)
    wire.produce(name, 1, *"abc")
    response = ask(wire, {name: [0, 1, 9], "there-is-no-such-topic": [0]}, version=version)
    (folder,) = response.results
    assert (response.error_code, folder.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert [topic.name for topic in folder.topics] == [name]
    sizes = {each.partition_index: each.partition_size for each in partitions(response, name)}
    assert sizes.keys() == {0, 1}
    assert sizes[0] == 0 < sizes[1]
    assert all((each.offset_lag, each.is_future_key) == (0, False) for each in partitions(response, name))


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_the_size_of_the_disk(wire: Wire, version: int) -> None:
    (folder,) = ask(wire, {}, version=version).results
    assert folder.log_dir
    if version < SINCE_DISK_SIZES:
        assert (folder.total_bytes, folder.usable_bytes) == (-1, -1)
    else:
        assert 0 < folder.usable_bytes < folder.total_bytes
    assert not folder.is_cordoned


def test_no_list_means_everything(wire: Wire, name: str) -> None:
    wire.create_topic(name, 2)
    assert {each.partition_index for each in partitions(ask(wire, None), name)} == {0, 1}


def test_an_empty_list_means_the_folders_alone(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    assert ask(wire, {}).results[0].topics == []
    assert ask(wire, {name: []}).results[0].topics == []
