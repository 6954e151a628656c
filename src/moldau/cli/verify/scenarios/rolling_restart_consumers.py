"""Each member of a group is restarted: by the classic protocol, as a static member, and by the consumer protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from moldau.cli.verify.checking import longest_pause_by_partition
from moldau.cli.verify.clients.verifiable import CLASSIC, Member
from moldau.cli.verify.outcome import Wrong
from moldau.cli.verify.trial import FLUSH_S_MAX, Trial
from moldau.client.cluster import Cluster
from moldau.wire.api import ApiKey

MEMBERS, PARTITIONS = 3, 6
CONSUMER, STATIC = "consumer", "static"
LOOKED_AT = 2_000  # of a member's last records, to see which partitions it reads


def perform(trial: Trial) -> None:
    variants = [CLASSIC, STATIC]
    if _knows_consumer_protocol(trial):
        variants.append(CONSUMER)
    else:
        trial.outcome.notes.append("the brokers do not know the consumer protocol")
    for variant in variants:
        trial.progress.step(f"a group of {MEMBERS} members, {variant}")
        _restart_members(trial, variant)


def _knows_consumer_protocol(trial: Trial) -> bool:
    found: list[bool] = []

    def look(client: Cluster) -> None:
        found.append(ApiKey.CONSUMER_GROUP_HEARTBEAT in client.versions())

    trial.ask(look, "no broker answers")
    return found[-1]


def _restart_members(trial: Trial, variant: str) -> None:
    topic, _ = trial.topic(variant, partitions=PARTITIONS)
    sender = trial.send(topic)

    def joined(number: int) -> Member:
        instance = f"{trial.prefix}-{number}" if variant == STATIC else None
        protocol = CONSUMER if variant == CONSUMER else CLASSIC
        return trial.join(topic, group=variant, protocol=protocol, instance=instance)

    members = [joined(number) for number in range(MEMBERS)]
    await_whole(trial, members, PARTITIONS)
    all_members = _restart_each(trial, variant, members, joined)
    sender.process.stop(FLUSH_S_MAX)
    trial.judge(topic, [sender], all_members)
    for member in members:
        member.process.stop()


def _restart_each(trial: Trial, variant: str, members: list[Member], joined: Callable[[int], Member]) -> list[Member]:
    """Gives all that were members at any time."""
    everybody = [*members]
    for number in range(MEMBERS):
        trial.let_run(trial.wishes.duration_s / MEMBERS / 3)
        begun_s = time.monotonic()
        members[number].process.stop()
        members[number] = joined(number)
        everybody.append(members[number])
        await_whole(trial, members, PARTITIONS)
        end_s = time.monotonic()
        records = [each for member in everybody for each in member.records]
        pauses = longest_pause_by_partition(records, begun_s, end_s)
        trial.outcome.add(f"{variant}_pause_ms", max(pauses.values()) * 1_000)
    return everybody


def await_whole(trial: Trial, members: Sequence[Member], partitions: int) -> None:
    """Each partition has one reader, each member has partitions, and reads them."""

    def is_assigned() -> bool:
        for member in members:
            if not member.process.is_running:
                raise Wrong(f"a member ended: {member.process.complaint}")
        assigned = sorted(partition for member in members for partition in member.assigned)
        return assigned == [*range(partitions)] and all(member.assigned for member in members)

    def is_read(since_s: float) -> bool:
        return all(member.assigned <= _read_since(member, since_s) for member in members)

    def assigned_now() -> str:
        return f"members have {[sorted(each.assigned) for each in members]}, and one each of {partitions} was expected,"

    trial.until(is_assigned, assigned_now)
    since_s = time.monotonic()
    trial.until(lambda: is_assigned() and is_read(since_s), lambda: f"not all is read; {assigned_now()}")


def _read_since(member: Member, since_s: float) -> set[int]:
    return {each.partition for each in member.records[-LOOKED_AT:] if each.at_s >= since_s}
