"""--delete and --delete-offsets."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import FAILED, OK
from moldau.cli.kafka.consumer_groups.listing import named_groups
from moldau.cli.kafka.consumer_groups.printing import MISSING, print_columns, print_error, widest
from moldau.cli.kafka.exceptions import thrown
from moldau.cli.kafka.scopes import split_scopes
from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.committed import delete_groups, delete_offsets
from moldau.client.offsets import partitions_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

OF_GROUP = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
OF_PARTITION = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
NO_PARTITION = -1
Outcomes = dict[TopicPartition, Refused | None]


def delete_groups_of(cluster: Cluster, options: Namespace) -> int:
    answers = delete_groups(cluster, named_groups(cluster, options))
    gone = ", ".join(f"'{group}'" for group, wrong in answers.items() if wrong is None)
    failed = {group: wrong for group, wrong in answers.items() if wrong is not None}
    if not failed:
        print(f"Deletion of requested consumer groups ({gone}) was successful.")
        return OK
    print_error("Deletion of some consumer groups failed:")
    for group, wrong in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {thrown(wrong.code, str(wrong))}")
    if gone:
        print(f"\nThese consumer groups were deleted successfully: {gone}")
    return FAILED


def delete_offsets_of(cluster: Cluster, options: Namespace) -> int:
    (group,) = options.group
    places, topics = split_scopes(options.topic)
    more, missing = partitions_of(cluster, topics)
    wanted = [*dict.fromkeys([*places, *more])]
    outcomes: Outcomes = {TopicPartition(topic, NO_PARTITION): Refused(code) for topic, code in missing.items()}
    wrong = None
    try:
        codes = delete_offsets(cluster, group, wanted)
        found = {place: Refused(code) if code else None for place, code in codes.items()}
        wrong = next((each for each in found.values() if each), None)
        outcomes |= found
    except Refused as refused:
        wrong = refused
        outcomes |= dict.fromkeys(wanted, refused)
    print_verdict(group, wrong)
    print_outcomes(outcomes)
    return FAILED if any(outcomes.values()) or wrong else OK


def print_verdict(group: str, wrong: Refused | None) -> None:
    if wrong is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif wrong.code in OF_GROUP:
        print_error(str(wrong))
    elif wrong.code in OF_PARTITION:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {wrong}")


def print_outcomes(outcomes: Outcomes) -> None:
    rows = [
        (place.topic, str(place.partition) if place.partition >= 0 else MISSING, status(wrong))
        for place, wrong in sorted(outcomes.items(), key=lambda each: f"{each[0].topic}{each[0].partition}")
    ]
    widths = (widest(15, (row[0] for row in rows)), 10, 15)
    print_columns([("TOPIC", "PARTITION", "STATUS"), *rows], widths)


def status(wrong: Refused | None) -> str:
    return f"Error: {thrown(wrong.code, str(wrong))}" if wrong else "Successful"
