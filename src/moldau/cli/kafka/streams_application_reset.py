"""`moldau streams-application-reset`: a Kafka Streams application begins anew, as kafka-streams-application-reset.sh
lets it: its input topics' offsets are set, intermediate topics are skipped, and its internal topics are deleted.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence

from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.kafka.reset_rules import rule_of, text_of
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, Refused, check, words_of
from moldau.client.groups.committed import commit_offsets
from moldau.client.groups.describing import describe_groups
from moldau.client.groups.planning import NoSuchPlaces, new_offsets, one_rule
from moldau.client.groups.removing import remove_members
from moldau.client.groups.resetting import EARLIEST, LATEST, NewOffset, Rule, Surprise, Target, read_plans
from moldau.client.offsets import partitions_of
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.wire.messages.delete_topics import DeleteTopicState

DRY_RUN = "----Dry run displays the actions which will be performed when running Streams Reset Tool----"
INTERNAL = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)",
    re.DOTALL,
)
NAMED_BY_STATE = 6  # the first version of DeleteTopics that has topics by name or id
Plan = Mapping[TopicPartition, NewOffset]


def run(options: Namespace) -> int:
    with open_cluster(options) as cluster:
        check_members(cluster, options)
        topics = [each.name or "" for each in cluster.metadata().topics if not each.is_internal]
        internal = internal_topics(options, sorted(topics))
        if options.dry_run:
            print(DRY_RUN)
        exit_code = reset_topics(cluster, options, topics)
        which = "specified" if options.internal_topics else "inferred"
        print(f"Deleting {which} internal topics {java_list(internal)}")
        if internal and not options.dry_run:
            delete_topics(cluster, internal)
        print("Done.")
    return exit_code


def java_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def check_members(cluster: Cluster, options: Namespace) -> None:
    group = options.application_id
    described = describe_groups(cluster, [group])[group]
    if isinstance(described, Refused):
        if described.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise described
        return
    if described.members and not options.force:
        members = ", ".join(f"{each.client_id} at {each.host.removeprefix('/')}" for each in described.members)
        raise CommandFailed(
            f"Consumer group '{group}' is still active and has following members: {members}. Make sure to stop all"
            " running application instances before running the reset tool. You can use option '--force' to remove"
            " active members from the group."
        )
    if described.members:
        print(f"Force deleting all active members in the group: {group}")
        remove_members(cluster, group, described.members)


def internal_topics(options: Namespace, topics: Sequence[str]) -> list[str]:
    """Those to delete. Checked before anything is done."""
    others = {*options.input_topics, *options.intermediate_topics}
    inferred = [
        each
        for each in topics
        if each.startswith(f"{options.application_id}-") and INTERNAL.fullmatch(each) and each not in others
    ]
    stray = [each for each in options.internal_topics if each not in inferred]
    if stray:
        raise UsageError(
            f"--internal-topics: {stray[0]} is no internal topic of {options.application_id};"
            " a dry run without this option shows them"
        )
    return options.internal_topics or inferred


def reset_topics(cluster: Cluster, options: Namespace, topics: Sequence[str]) -> int:
    inputs, between = options.input_topics, options.intermediate_topics
    if between:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    if not inputs and not between:
        print("No input or intermediate topics specified. Skipping seek.")
        return OK
    if inputs:
        print(f"Reset-offsets for input topics {java_list(inputs)}")
    if between:
        print(f"Seek-to-end for intermediate topics {java_list(between)}")
    missing = say_missing("input", inputs, topics, " ") + say_missing("intermediate", between, topics, "")
    places, _ = partitions_of(cluster, [each for each in [*inputs, *between] if each in topics])
    if places:
        plan = planned(cluster, options, places)
        say_plan(options, plan)
        if not options.dry_run:
            apply(cluster, options.application_id, plan)
        print("Done.")
    return FAILED if missing else OK


def say_missing(kind: str, wanted: Sequence[str], topics: Sequence[str], space: str) -> int:
    missing = [each for each in wanted if each not in topics]
    if missing:
        print(f"Following {kind} topics are not found, skipping them")
    for each in missing:
        print(f"Topic:{space}{each}")
    return len(missing)


def planned(cluster: Cluster, options: Namespace, places: Sequence[TopicPartition]) -> Plan:
    ours = [place for place in places if place.topic in options.input_topics]
    rules = {**one_rule(LATEST, places), **input_rules(options, ours)}
    try:
        return new_offsets(cluster, options.application_id, rules, counts_from_end=True)
    except NoSuchPlaces as wrong:
        raise CommandFailed(str(wrong)) from None


def input_rules(options: Namespace, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, Rule]:
    if options.from_file is None:
        return one_rule(rule_of(options, now_ms=SystemClock().now_ms()) or EARLIEST, places)
    try:
        plans = read_plans(text_of(options.from_file), group=options.application_id)
    except ValueError as wrong:
        raise UsageError(f"{options.from_file}: {wrong}") from None
    plan = plans.get(options.application_id, {})
    for place in places:
        if place not in plan:
            raise UsageError(f"{options.from_file}: it has no offset for {place}")
    for place in plan:
        if place not in places:
            raise UsageError(f"{options.from_file}: {place} is of no input topic")
    return {place: Rule(Target.OFFSET, plan[place]) for place in places}


def say_plan(options: Namespace, plan: Plan) -> None:
    inputs = {place: new for place, new in plan.items() if place.topic in options.input_topics}
    if inputs:
        print(f"Following input topics offsets will be reset to (for consumer group {options.application_id})")
    for place, new in inputs.items():
        say_surprise(place, new)
    for place, new in inputs.items():
        print(f"Topic: {place.topic} Partition: {place.partition} Offset: {new.offset}")
    between = [place for place in plan if place not in inputs]
    if between:
        print(
            f"Following intermediate topics offsets will be reset to end (for consumer group {options.application_id})"
        )
    for place in between:
        print(f"Topic: {place.topic}")


def say_surprise(place: TopicPartition, new: NewOffset) -> None:
    match new.surprise:
        case Surprise.ABOVE_END:
            print(f"New offset ({new.asked}) is higher than latest offset. Value will be set to {new.offset}")
        case Surprise.BELOW_START:
            print(f"New offset ({new.asked}) is lower than earliest offset. Value will be set to {new.offset}")
        case Surprise.NONE_SO_LATE:
            print(
                f"Partition {place.partition} from topic {place.topic} is empty, without a committed record."
                " Falling back to latest known offset."
            )


def apply(cluster: Cluster, group: str, plan: Plan) -> None:
    codes = commit_offsets(cluster, group, {place: new.offset for place, new in plan.items()})
    for place, code in codes.items():
        check(code, f"{place}: {words_of(code)}")


def delete_topics(cluster: Cluster, topics: Sequence[str]) -> None:
    timeout_ms = round(cluster.timeout_s * 1_000)
    if cluster.versions().get(ApiKey.DELETE_TOPICS, (0, 0))[1] < NAMED_BY_STATE:
        request = DeleteTopicsRequest(topic_names=[*topics], timeout_ms=timeout_ms)
    else:
        request = DeleteTopicsRequest([DeleteTopicState(each) for each in topics], timeout_ms=timeout_ms)
    answer = cluster.ask_controller(
        request, DeleteTopicsResponse, codes=lambda found: [each.error_code for each in found.responses]
    )
    failed = [each for each in answer.responses if each.error_code != ErrorCode.NONE]
    for each in failed[1:]:
        told = each.error_message or words_of(each.error_code)
        print(f"moldau streams-application-reset: deleting topic {each.name}: {told}", file=sys.stderr)
    if failed:
        told = failed[0].error_message or words_of(failed[0].error_code)
        raise CommandFailed(f"deleting topic {failed[0].name}: {told}")
