"""`moldau topics create` and `delete`."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from moldau.cli.connection import split_pair
from moldau.cli.failures import FAILED, OK, UsageError
from moldau.cli.output import Change, print_changes
from moldau.cli.questions import ask, ask_people, is_terminal
from moldau.cli.topics.changes import BROKERS_DEFAULT, Outcome, Outcomes, create, delete, new_topic
from moldau.cli.topics.failures import problem, problem_of
from moldau.cli.wire import open_cluster
from moldau.core.errors import ErrorCode


def create_topics(options: Namespace) -> int:
    configs = dict(split_pair(pair, option="--config") for pair in options.config)
    wanted = [
        new_topic(
            name,
            partitions=options.partitions or BROKERS_DEFAULT,
            replication_factor=options.replication_factor or BROKERS_DEFAULT,
            configs=configs,
        )
        for name in dict.fromkeys(options.topics)
    ]
    with open_cluster(options) as cluster:
        outcomes = create(cluster, wanted, is_dry_run=options.dry_run)
    fine = ErrorCode.TOPIC_ALREADY_EXISTS if options.if_not_exists else None
    done = "would create" if options.dry_run else "created"
    return report(options, outcomes, done=done, fine=fine, failure=problem_of)


def delete_topics(options: Namespace) -> int:
    names = list(dict.fromkeys(options.topics))
    with open_cluster(options) as cluster:
        there = {each.name: each for each in cluster.metadata(names).topics if each.error_code == ErrorCode.NONE}
        internal = [name for name in names if name in there and (there[name].is_internal or name.startswith("__"))]
        if internal:
            ask_for_internal(internal, options)
        elif there:
            ask(question(list(filter(None, there))), yes=options.yes)
        outcomes = delete(cluster, names)
    fine = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if options.if_exists else None
    return report(options, outcomes, done="deleted", fine=fine, failure=deletion_problem)


def question(names: list[str]) -> str:
    what = f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics ({', '.join(names)})"
    return f"delete {what} and all records?"


def ask_for_internal(names: list[str], options: Namespace) -> None:
    """Without them groups lose their offsets, or transactions their state: --yes, and people are asked all the same."""
    shown = ", ".join(names)
    if not options.yes:
        raise UsageError(
            f"{shown}: an internal topic, without which groups or transactions lose their state; say --yes"
        )
    if is_terminal():
        ask_people(f"delete {shown}, which the cluster itself needs?")


def deletion_problem(topic: str, outcome: Outcome) -> str:
    if outcome.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"topic {topic!r} does not exist; --if-exists accepts that"
    return problem(topic, outcome.code, outcome.told)


def report(
    options: Namespace, outcomes: Outcomes, *, done: str, fine: int | None, failure: Callable[[str, Outcome], str]
) -> int:
    """One line for each topic; one failure does not hide what happened to the others."""
    changes, exit_code = [], OK
    for topic in dict.fromkeys(options.topics):
        outcome = outcomes[topic]
        if outcome.is_fine:
            changes.append(Change({"topic": topic, "done": done}, f"{done} {topic}"))
        elif outcome.code != fine:
            told = failure(topic, outcome)
            changes.append(Change({"topic": topic, "error": told}))
            print(f"moldau topics: {told}", file=sys.stderr)
            exit_code = FAILED
    print_changes(changes, output=options.output)
    return exit_code
