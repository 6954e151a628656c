"""Consumer groups: those that retention passes, that stand still with records before them, that never settle."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.cli.doctor.cluster.facts import RETENTION_BYTES, RETENTION_MS, ClusterFacts, Partition, Topic, Unread
from moldau.cli.doctor.findings import Finding, Severity, counted, listed, ok
from moldau.cli.units import duration_text

SOON_MS = 86_400_000
SOON_SHARE = 0.25  # of retention, where that is short
EMPTY = "Empty"


def check_retention_against_lag(facts: ClusterFacts) -> Iterator[Finding]:
    lost: dict[tuple[str, str], list[tuple[Unread, Partition]]] = {}
    soon: dict[tuple[str, str], list[tuple[float, Unread]]] = {}
    for unread in facts.unread:
        topic, partition = facts.topics.get(unread.place.topic), facts.partition(unread.place)
        if topic is None or partition is None or not topic.deletes:
            continue
        key = (unread.group, topic.name)
        if partition.start is not None and unread.offset < partition.start:
            lost.setdefault(key, []).append((unread, partition))
            continue
        left_ms = left_until_deleted_ms(topic, partition, unread, facts.now_ms)
        if left_ms is not None and left_ms < _soon(topic):
            soon.setdefault(key, []).append((left_ms, unread))
    for (group, name), found in lost.items():
        yield _lost(group, name, found)
    for (group, name), near in soon.items():
        yield _soon_deleted(facts.topics[name], group, near)
    if not (lost or soon) and facts.groups:
        yield ok("retention-lag", "groups", "none is near to losing records to retention")


def _soon(topic: Topic) -> float:
    retention_ms = topic.number(RETENTION_MS)
    return SOON_MS if retention_ms is None or retention_ms < 0 else min(SOON_MS, retention_ms * SOON_SHARE)


def left_until_deleted_ms(topic: Topic, partition: Partition, unread: Unread, now_ms: int) -> float | None:
    """For how long the record stays at least: by its age, or by the bytes behind it. None for ever, or if unknown."""
    retention_ms, retention_bytes = topic.number(RETENTION_MS), topic.number(RETENTION_BYTES)
    by_age = by_size = None
    if retention_ms is not None and retention_ms >= 0 and unread.written_ms is not None:
        by_age = unread.written_ms + retention_ms - now_ms
    if retention_bytes is not None and retention_bytes >= 0 and partition.bytes_per_s:
        behind = _bytes_behind(partition, unread.offset)
        by_size = None if behind is None else (retention_bytes - behind) / partition.bytes_per_s * 1_000
    known = [each for each in (by_age, by_size) if each is not None]
    return max(0.0, min(known)) if known else None


def _bytes_behind(partition: Partition, offset: int) -> float | None:
    start, end, size = partition.start, partition.end, partition.size_bytes
    if start is None or end is None or size is None or end <= start:
        return None
    return size * (end - offset) / (end - start)


def _lost(group: str, topic: str, found: list[tuple[Unread, Partition]]) -> Finding:
    records = sum((partition.start or 0) - unread.offset for unread, partition in found)
    places = listed([str(unread.place) for unread, _ in found])
    return Finding(
        Severity.PROBLEM,
        "retention-lag",
        f"group {group}",
        f"{counted(records, 'record')} of {places} are deleted that it has not read",
        "it will go on where auto.offset.reset says; what was deleted can't be read any more",
        (
            f"moldau groups reset {group} --topic {topic} --to earliest     # the oldest records that are left",
            f"moldau topics alter {topic} --config retention.ms=…     # more than the group is ever behind",
        ),
    )


def _soon_deleted(topic: Topic, group: str, near: list[tuple[float, Unread]]) -> Finding:
    left_ms, first = min(near, key=lambda each: each[0])
    retention_ms = topic.number(RETENTION_MS)
    when = f"in {duration_text(left_ms)}" if left_ms > 0 else "at any moment, with the segment that it is in"
    return Finding(
        Severity.WARNING if left_ms > 0 else Severity.PROBLEM,
        "retention-lag",
        f"group {group}",
        f"its first unread record of {first.place} may be deleted {when}"
        + (f", and so in {counted(len(near) - 1, 'other partition')}" if len(near) > 1 else ""),
        "what retention deletes before it is read is lost to this group",
        (
            f"moldau groups describe {group}     # does it read at all?",
            f"moldau topics alter {topic.name} --config retention.ms={2 * retention_ms}"
            if retention_ms and retention_ms > 0
            else f"moldau topics alter {topic.name} --config retention.bytes=-1",
        ),
    )


def check_groups(facts: ClusterFacts) -> Iterator[Finding]:
    standing = [each for each in facts.groups if each.state == EMPTY and each.lag]
    unsettled = [each for each in facts.groups if each.rebalancing_ms is not None]
    if standing:
        yield Finding(
            Severity.WARNING,
            "empty-groups",
            listed([f"{each.name} ({each.lag:,})" for each in standing]),
            f"{counted(len(standing), 'group')} without members and with records to read",
            "nobody reads: consumers that stopped, or a group that is not used any more and hides those that matter",
            (
                f"moldau groups describe {standing[0].name}",
                f"moldau groups delete {standing[0].name}     # if nobody needs it",
            ),
        )
    for group in unsettled:
        yield Finding(
            Severity.WARNING,
            "rebalancing-groups",
            f"group {group.name}",
            f"{group.state} with {counted(group.members, 'member')}, unchanged for"
            f" {duration_text(group.rebalancing_ms or 0)}",
            "nobody of it reads meanwhile: a member that works on records for long holds up the others",
            (
                f"moldau consumer-groups --describe --group {group.name} --members --verbose",
                "a shorter max.poll.interval.ms, smaller max.poll.records, or group.protocol=consumer, which does not"
                " stop everybody",
            ),
        )
    if facts.groups and not (standing or unsettled):
        yield ok("groups", "groups", f"{counted(len(facts.groups), 'group')}, all with members or nothing to read")


def check_unasked(facts: ClusterFacts) -> Iterator[Finding]:
    for subject, why in facts.unasked.items():
        yield Finding(
            Severity.NOTE,
            "unasked",
            subject,
            f"could not be asked: {why}",
            "what depends on it was not judged; everything else was",
            (
                "moldau acls add --principal USER --operation describe --operation describe-configs --cluster"
                " --topic '*' --group '*'",
            )
            if "uthoriz" in why
            else (),
        )
