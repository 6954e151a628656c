"""`moldau log-dirs`: how much each replica takes in each log directory of each broker, as JSON."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Collection

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.cli.kafka.exceptions import exception_of
from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from moldau.wire.messages.describe_log_dirs import DescribeLogDirsResult


def run(options: Namespace) -> int:
    topics = {each for each in options.topic_list.split(",") if each}
    wanted = broker_ids(options.broker_list)
    with open_patiently(options) as client:
        there = client.nodes().keys()
        missing = wanted - there
        if missing:
            raise CommandFailed(
                f"ERROR: The given brokers do not exist from --broker-list: {listed(missing)}."
                f" Current existent brokers: {listed(there)}"
            )
        asked = sorted(wanted or there)
        print("Querying brokers for log directories information")
        found = [described(client, each, topics) for each in asked]
    print(f"Received log directory information from brokers {listed(asked)}")
    print(json.dumps({"brokers": found, "version": 1}, separators=(",", ":"), ensure_ascii=False))
    return OK


def broker_ids(text: str) -> set[int]:
    try:
        return {int(each) for each in text.split(",") if each}
    except ValueError:
        raise UsageError(f"--broker-list: expected broker ids such as 1,2,3, not {text!r}") from None


def listed(ids: Collection[int]) -> str:
    return ",".join(map(str, sorted(ids)))


def described(client: Cluster, broker_id: int, topics: Collection[str]) -> dict[str, object]:
    answer = client.ask_broker(broker_id, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    check(answer.error_code)
    return {"broker": broker_id, "logDirs": [_directory(each, topics) for each in answer.results]}


def _directory(directory: DescribeLogDirsResult, topics: Collection[str]) -> dict[str, object]:
    failed = directory.error_code != ErrorCode.NONE
    found = {
        TopicPartition(topic.name, each.partition_index): each
        for topic in directory.topics
        if not topics or topic.name in topics
        for each in topic.partitions
    }
    partitions = [
        {"partition": str(place), "size": each.partition_size, "offsetLag": each.offset_lag,
         "isFuture": each.is_future_key}
        for place, each in sorted(found.items())
    ]  # fmt: skip
    return {
        "partitions": partitions,
        "error": exception_of(directory.error_code) if failed else None,
        "logDir": directory.log_dir,
    }
