"""Idempotent producers are stopped and killed in turn; then one that copies in transactions is killed."""

from __future__ import annotations

from moldau.cli.verify.checking import Acknowledged
from moldau.cli.verify.clients.verifiable import Copier, Member
from moldau.cli.verify.outcome import Wrong
from moldau.cli.verify.trial import FLUSH_S_MAX, Trial

PRODUCERS = 2
STARTS_MAX = 20  # of the copier: one that can't go on is started again, and one that never can is given up


def perform(trial: Trial) -> None:
    _restart_idempotent(trial)
    _restart_transactional(trial)


def _restart_idempotent(trial: Trial) -> None:
    topic, _ = trial.topic("idempotent", partitions=3)
    senders = [trial.send(topic, prefix=number) for number in range(PRODUCERS)]
    member = trial.join(topic, group="idempotent")
    current = [*senders]
    trial.await_read(member)
    for way in ("stop", "kill"):
        for number, sender in enumerate(current):
            trial.let_run(trial.wishes.duration_s / 2 / PRODUCERS / 2)
            trial.progress.step(f"{way} producer {number + 1}, and start another one")
            if way == "stop":
                sender.process.stop(FLUSH_S_MAX)
            else:
                sender.process.kill()
            current[number] = trial.send(topic, prefix=len(senders))
            senders.append(current[number])
            trial.await_acknowledged(current[number])
    trial.outcome.figures["producers"] = len(senders)
    trial.judge(topic, senders, [member])
    member.process.stop()


def _restart_transactional(trial: Trial) -> None:
    source, _ = trial.topic("source", partitions=3)
    target, _ = trial.topic("copied", partitions=3)
    sender, reader = trial.send(source), trial.join(target, group="copied")
    trial.await_acknowledged(sender)
    copiers = [trial.copy(source, target)]
    for _ in range(trial.wishes.rounds):
        _await_copies(trial, copiers, reader)
        trial.let_run(trial.wishes.duration_s / 2 / trial.wishes.rounds)
        trial.progress.step("kill the transactional producer, and start it again")
        copiers[-1].process.kill()
        copiers.append(trial.copy(source, target))
    sender.process.stop(FLUSH_S_MAX)
    wanted = {each.value for each in sender.acknowledged}

    def is_copied() -> bool:
        _keep_copying(trial, copiers, source, target)
        return wanted <= reader.values

    trial.until(is_copied, lambda: f"{len(wanted - reader.values)} of {len(wanted)} records are not copied")
    copiers[-1].process.stop()
    trial.outcome.figures["transactions"] = sum(each.transactions for each in copiers)
    # In the copy a value may be at any offset, and at one.
    expected = [Acknowledged(each.value, each.partition, -1, each.at_s) for each in sender.acknowledged]
    trial.compare(target, expected, [reader])
    again = len(reader.records) - len(reader.values)
    if again:
        trial.outcome.complaints.append(f"{again} copies were read twice by a reader of committed records")


def _await_copies(trial: Trial, copiers: list[Copier], reader: Member) -> None:
    begun = len(reader.records)

    def has_copied() -> bool:
        if not copiers[-1].process.is_running:
            raise Wrong(f"the copier ended: {copiers[-1].process.complaint}")
        return len(reader.records) > begun

    trial.until(has_copied, "nothing is copied")


def _keep_copying(trial: Trial, copiers: list[Copier], source: str, target: str) -> None:
    if not copiers[-1].process.is_running:
        if len(copiers) > STARTS_MAX:
            raise Wrong(f"the copier ends again and again: {copiers[-1].process.complaint}")
        copiers.append(trial.copy(source, target))
