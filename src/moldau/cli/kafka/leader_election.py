"""`moldau leader-election`: have the preferred, or any living, replica lead partitions."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from typing import Any

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.cli.kafka.commands.leader_election import TYPES
from moldau.cli.kafka.exceptions import thrown
from moldau.client.cluster import Refused, check
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import ElectLeadersRequest, ElectLeadersResponse
from moldau.wire.messages.elect_leaders import TopicPartitions

TIMEOUT_MS = 30_000


def run(options: Namespace) -> int:
    places = _places(options)
    topics = None
    if places is not None:
        topics = [
            TopicPartitions(topic, [each.partition for each in places if each.topic == topic])
            for topic in dict.fromkeys(each.topic for each in places)
        ]
    request = ElectLeadersRequest(
        election_type=TYPES.index(options.election_type), topic_partitions=topics, timeout_ms=TIMEOUT_MS
    )
    with open_patiently(options) as client:
        answer = client.ask_controller(request, ElectLeadersResponse, codes=lambda found: [found.error_code])
    _check(answer.error_code)
    return _told(options.election_type, answer)


def _places(options: Namespace) -> list[TopicPartition] | None:
    """None for all that there are."""
    if options.topic is not None:
        return [TopicPartition(options.topic, options.partition)]
    if options.path_to_json_file is None:
        return None
    path = options.path_to_json_file
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except ValueError as wrong:
        raise UsageError(f"Replica election data is empty: {path} is no valid JSON: {wrong}") from None
    return _listed(document, path)


def _listed(document: Any, path: str) -> list[TopicPartition]:
    rows = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise UsageError(f'{path}: Replica election data is missing "partitions" field')
    try:
        places = [TopicPartition(str(row["topic"]), int(row["partition"])) for row in rows]
    except (TypeError, KeyError, ValueError):
        raise UsageError(f"{path}: expected a topic and a partition in each of partitions") from None
    twice = [str(place) for place, count in Counter(places).items() if count > 1]
    if twice:
        raise UsageError(f"Replica election data contains duplicate partitions: [{', '.join(twice)}]")
    return places


def _check(code: int) -> None:
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise Refused(code, "Not authorized to perform leader election")
    if code == ErrorCode.REQUEST_TIMED_OUT:
        raise Refused(code, "Timeout waiting for election results")
    check(code)


def _told(election_type: str, answer: ElectLeadersResponse) -> int:
    found = {
        TopicPartition(topic.topic, each.partition_id): each
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    done = sorted(place for place, each in found.items() if each.error_code == ErrorCode.NONE)
    unneeded = sorted(place for place, each in found.items() if each.error_code == ErrorCode.ELECTION_NOT_NEEDED)
    failed = sorted(found.keys() - {*done, *unneeded})
    if done:
        names = ", ".join(map(str, done))
        print(f"Successfully completed leader election ({election_type}) for partitions {names}")
    if unneeded:
        print(f"Valid replica already elected for partitions {', '.join(map(str, unneeded))}")
    for place in failed:
        why = thrown(found[place].error_code, found[place].error_message)
        print(f"Error completing leader election ({election_type}) for partition: {place}: {why}")
    if failed:
        raise CommandFailed(f"{len(failed)} replica(s) could not be elected")
    return OK
