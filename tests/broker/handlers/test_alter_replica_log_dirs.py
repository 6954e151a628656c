from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from moldau.wire.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from tests.broker.handlers.wire import Wire


def alter(wire: Wire, version: int, path: str, topic: str) -> dict[int, int]:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0, 9])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    (result,) = wire.ask(request, version, AlterReplicaLogDirsResponse).results
    assert result.topic_name == topic
    return {each.partition_index: each.error_code for each in result.partitions}


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_stays_in_its_folder(wire: Wire, name: str, version: int) -> None:
    wire.create_topic(name)
    (folder,) = wire.ask(DescribeLogDirsRequest(topics=[]), 1, DescribeLogDirsResponse).results
    assert alter(wire, version, folder.log_dir, name) == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("path", ["/no/such/folder", "relative", ""])
def test_a_folder_that_the_broker_does_not_have(wire: Wire, name: str, path: str) -> None:
    wire.create_topic(name)
    assert alter(wire, 2, path, name) == {0: ErrorCode.LOG_DIR_NOT_FOUND, 9: ErrorCode.LOG_DIR_NOT_FOUND}
