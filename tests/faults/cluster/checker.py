"""The ten invariants of a cluster, over the recorded history of every operation of its clients.

Each check gives what it found in words. The ninth compares replicas' files (`replica_files.py`), of which a history
knows nothing; its findings are handed in. An eleventh counts copies: a transactional copier makes one of each record. A
twelfth follows what leaders tell of their high watermarks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tests.faults.cluster import history as h
from tests.faults.cluster.facts import Facts, Send, TopicPartition, Transaction
from tests.faults.cluster.history import Event, ordinal_of, transactional_id_of

EXAMPLES_MAX = 5

INVARIANTS = {
    1: "a value read whose send failed or was aborted",
    2: "one offset with two values",
    3: "an acknowledged write never seen although a later offset is",
    4: "one idempotent write at two offsets",
    5: "a consumer that skips or goes back without a rebalance",
    6: "sends of one producer out of order",
    7: "a transaction seen in part, or before its commit",
    8: "an acknowledged write not seen by every consumer in the end",
    9: "replicas that differ below the high watermark",
    10: "a delayed end that ended a later transaction",
    11: "a record not copied exactly once",
    12: "a high watermark that went back",
}


@dataclass(frozen=True, slots=True)
class Finding:
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    findings: dict[int, Finding]
    operations: int
    acknowledged: int

    @property
    def is_sound(self) -> bool:
        return not any(finding.count for finding in self.findings.values())

    def __str__(self) -> str:
        lines = [f"{self.operations} operations, {self.acknowledged} sends acknowledged"]
        for number, finding in self.findings.items():
            lines.append(f"{number:3} {finding.count:6}  {INVARIANTS[number]}")
            lines += [f"              {example}" for example in finding.examples]
        return "\n".join(lines)


Words: TypeAlias = Iterator[str]


def check(events: Iterable[Event], *, differing_replicas: Sequence[str] = ()) -> Verdict:
    facts = Facts(events)
    anomalous: dict[str, str] = {}  # transactions with an anomaly of another kind, and which
    found = {
        1: _failed_reads(facts, anomalous),
        2: (f"{_at(place)} held {first} and {second}" for place, first, second in facts.clashes),
        3: _lost_writes(facts, anomalous),
        4: _repeated_writes(facts),
        5: _jumps(facts),
        6: _out_of_order(facts),
        7: _torn_transactions(facts, anomalous),
        8: _unseen_writes(facts, anomalous),
        9: iter(differing_replicas),
        10: _ended_by_another(facts, anomalous),
        11: _miscopied(facts),
        12: iter(facts.receding),
    }
    return Verdict({number: _counted(words) for number, words in found.items()}, facts.operations, facts.acknowledged)


def is_all_seen(facts: Facts) -> bool:
    """Whether a run has nothing to wait for before it is judged; asked again and again, so it looks no further than
    the first write that some viewer lacks."""
    acknowledged = [send for send in facts.sends.values() if facts.is_acknowledged(send)]
    for viewer in facts.viewers.values():
        if any(send.value not in viewer.seen for send in acknowledged if send.partition[0] in viewer.topics):
            return False
    return next(_uncopied(facts), None) is None


def _counted(words: Iterable[str]) -> Finding:
    count, examples = 0, []
    for text in words:
        count += 1
        if count <= EXAMPLES_MAX:
            examples.append(text)
    return Finding(count, tuple(examples))


def _at(place: tuple[str, int, int]) -> str:
    return f"{place[0]}-{place[1]} offset {place[2]}"


def _read(facts: Facts) -> Iterator[tuple[Event, str]]:
    """Every read of a value, with the poll that made it."""
    for events in facts.polls.values():
        for event in events:
            for record in event.records:
                yield event, record[3]


def _failed_reads(facts: Facts, anomalous: dict[str, str]) -> Words:
    told: set[tuple[str, str]] = set()
    for event, value in _read(facts):
        send = facts.sends.get(value)
        if send is None:
            reason = "which nobody sent"
        elif send.state == h.FAIL:
            reason = "whose send had failed"
        elif event.committed and send.txn and facts.txns[send.txn].is_aborted:
            reason = f"of the aborted transaction {send.txn}"
            anomalous.setdefault(send.txn, f"is aborted, and {event.process} read {value} of it as committed")
        else:
            continue
        if (event.process, value) not in told:
            told.add((event.process, value))
            yield f"{event.process} read {value!r}, {reason}, at {event.at_s:.3f} s"


def _lost_writes(facts: Facts, anomalous: dict[str, str]) -> Words:
    for send in facts.sends.values():
        if send.value in facts.seen or not facts.is_acknowledged(send):
            continue
        last = facts.last_seen.get(send.partition, -1)
        if 0 <= send.offset < last:
            if send.txn:
                anomalous.setdefault(send.txn, f"is committed, and {send.value} of it is lost")
            yield f"{_name(send)} was acknowledged at offset {send.offset} and never seen; offset {last} was"


def _name(send: Send) -> str:
    txn = f" in {send.txn}" if send.txn else ""
    return f"{send.value!r} to {send.partition[0]}-{send.partition[1]}{txn}"


def _repeated_writes(facts: Facts) -> Words:
    for value, places in facts.repeats.items():
        if facts.may_repeat(value):
            continue
        yield f"{value!r} is at {' and at '.join(_at(place) for place in sorted(places))}"


def _jumps(facts: Facts) -> Words:
    visible = {committed: _visible_offsets(facts, committed=committed) for committed in (False, True)}
    for process, events in facts.polls.items():
        last: dict[TopicPartition, int] = {}
        for event in events:
            if event.op == h.ASSIGN:
                last = dict.fromkeys(event.partitions, event.offset - 1) if event.offset >= 0 else {}
                continue
            yield from _jumps_of_poll(process, event, last, visible[event.committed])


def _jumps_of_poll(
    process: str, event: Event, last: dict[TopicPartition, int], visible: dict[TopicPartition, list[int]]
) -> Words:
    for topic, partition, offset, _ in event.records:
        key = (topic, partition)
        before = last.get(key)
        last[key] = offset
        if before is None:
            continue
        if offset <= before:
            yield f"{process} went back from {before} to {offset} of {topic}-{partition} at {event.at_s:.3f} s"
        elif offset > before + 1:
            offsets = visible[key]
            expected = offsets[bisect_right(offsets, before)]
            if expected < offset:
                yield (
                    f"{process} went from {before} to {offset} of {topic}-{partition} at {event.at_s:.3f} s "
                    f"without {expected}"
                )


def _visible_offsets(facts: Facts, *, committed: bool) -> dict[TopicPartition, list[int]]:
    offsets: dict[TopicPartition, list[int]] = defaultdict(list)
    for (topic, partition, offset), value in facts.values.items():
        if facts.is_visible(value, committed=committed):
            offsets[topic, partition].append(offset)
    # What was read in spite of an abort counts as read: the first invariant tells of it.
    for each in facts.last_seen:
        offsets[each].append(1 << 62)
    for known in offsets.values():
        known.sort()
    return offsets


def _out_of_order(facts: Facts) -> Words:
    last: dict[tuple[str, TopicPartition], tuple[int, str]] = {}
    for send in facts.sends.values():  # in the order of their beginnings
        place = facts.places.get(send.value)
        if place is None:
            continue
        key = (send.process, send.partition)
        before = last.get(key)
        if before is not None and place[2] <= before[0]:
            yield (
                f"{send.process} sent {before[1]!r} before {send.value!r}, which are at offsets {before[0]} and "
                f"{place[2]} of {send.partition[0]}-{send.partition[1]}"
            )
        last[key] = (place[2], send.value)


def _torn_transactions(facts: Facts, anomalous: dict[str, str]) -> Words:
    told: set[str] = set()
    for event, value in _read(facts):
        send = facts.sends.get(value)
        if not event.committed or send is None or not send.txn or send.txn in told:
            continue
        if event.at_s < facts.txns[send.txn].commit_invoked_s:
            told.add(send.txn)
            anomalous.setdefault(send.txn, f"was seen before its commit: {value}")
            yield f"{event.process} read {value!r} of {send.txn} at {event.at_s:.3f} s, before its commit was asked for"
    viewers = [each for each in facts.viewers.values() if each.committed and each.is_complete]
    for txn in facts.txns.values():
        if not any(send.value in facts.seen_committed for send in txn.sends):
            continue
        for viewer in viewers:
            wanted = [send for send in txn.sends if send.partition[0] in viewer.topics and send.state != h.FAIL]
            missing = [send for send in wanted if send.value not in viewer.seen]
            if missing:
                anomalous.setdefault(txn.name, f"was seen without {missing[0].value}")
                yield (
                    f"{viewer.name} saw {len(wanted) - len(missing)} of the {len(wanted)} values of {txn.name}, and "
                    f"not {_name(missing[0])}"
                )


def _unseen_writes(facts: Facts, anomalous: dict[str, str]) -> Words:
    for viewer in facts.viewers.values():
        for send in facts.sends.values():
            if send.value in viewer.seen or send.partition[0] not in viewer.topics or not facts.is_acknowledged(send):
                continue
            if send.txn:
                anomalous.setdefault(send.txn, f"is committed, and {viewer.name} never saw {send.value}")
            yield f"{viewer.name} never saw {_name(send)}, acknowledged at offset {send.offset}"


def _ended_by_another(facts: Facts, anomalous: dict[str, str]) -> Words:
    """Anomalies of transactions that follow one of the same id whose end was not answered, or was sent again.

    `anomalous` is complete by now: the checks before this one have run.
    """
    by_id: dict[str, list[Transaction]] = defaultdict(list)
    for txn in facts.txns.values():
        by_id[transactional_id_of(txn.name)].append(txn)
    for transactions in by_id.values():
        transactions.sort(key=lambda txn: ordinal_of(txn.name))
        loose: Transaction | None = None
        for txn in transactions:
            if loose is not None and txn.name in anomalous:
                yield f"{txn.name} {anomalous[txn.name]}; an end of {loose.name} was under way"
            if txn.is_end_loose:
                loose = txn


def _miscopied(facts: Facts) -> Words:
    copies: dict[str, list[Send]] = defaultdict(list)
    for send in facts.sends.values():
        if send.source and send.value in facts.seen_committed:
            copies[send.source].append(send)
    for source, sends in copies.items():
        if len(sends) > 1 and not facts.may_repeat(source):
            yield f"{source!r} was copied {len(sends)} times: {' and '.join(_name(send) for send in sends)}"
    if facts.is_final:
        yield from _uncopied(facts)


def _uncopied(facts: Facts) -> Words:
    copied = {send.source for send in facts.sends.values() if send.source and send.value in facts.seen_committed}
    topics = {facts.sends[source].partition[0] for source in copied if source in facts.sends}
    for send in facts.sends.values():
        if send.partition[0] in topics and send.value not in copied and facts.is_acknowledged(send):
            yield f"{_name(send)} was never copied"
