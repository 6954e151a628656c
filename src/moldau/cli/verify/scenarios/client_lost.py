"""A member of a group is killed, and then a producer in the middle of a transaction: who waits, and for how long."""

from __future__ import annotations

import time

from moldau.cli.verify.scenarios.rolling_restart_consumers import await_whole
from moldau.cli.verify.trial import SESSION_MS, Trial

PARTITIONS = 4
TRANSACTION_MS = 5_000
# Beyond the client's own time: brokers look for transactions that are too old every 10 s, and a machine may be busy.
LATE_MS = 15_000


def perform(trial: Trial) -> None:
    _lose_member(trial)
    _lose_transaction(trial)


def _lose_member(trial: Trial) -> None:
    topic, _ = trial.topic("member", partitions=PARTITIONS)
    sender = trial.send(topic)
    members = [trial.join(topic, group="member") for _ in range(2)]
    await_whole(trial, members, PARTITIONS)
    trial.let_run(trial.wishes.duration_s / 2)
    lost, left = members
    trial.progress.step(f"kill a consumer with session.timeout.ms={SESSION_MS}")
    begun_s = time.monotonic()
    lost.process.kill()
    await_whole(trial, [left], PARTITIONS)
    taken_ms = (time.monotonic() - begun_s) * 1_000
    trial.outcome.add("taken_over_ms", taken_ms)
    if taken_ms > SESSION_MS + LATE_MS:
        trial.outcome.complaints.append(f"a lost consumer's partitions were read by others after {taken_ms:.0f} ms")
    trial.judge(topic, [sender], members)
    left.process.stop()


def _lose_transaction(trial: Trial) -> None:
    topic, _ = trial.topic("transaction")
    reader = trial.join(topic, group="transaction")
    trial.until(lambda: bool(reader.assigned), "the reader has no partition")
    producer = trial.open_transaction(topic, timeout_ms=TRANSACTION_MS)
    trial.until(lambda: producer.is_open, lambda: f"no transaction was begun: {producer.process.complaint}")
    trial.progress.step(f"kill a producer in a transaction with transaction.timeout.ms={TRANSACTION_MS}")
    begun_s = time.monotonic()
    producer.process.kill()
    sender = trial.send(topic)
    trial.await_acknowledged(sender)
    trial.await_read(reader)
    stuck_ms = (reader.records[0].at_s - begun_s) * 1_000
    trial.outcome.add("reader_stuck_ms", stuck_ms)
    if stuck_ms > TRANSACTION_MS + LATE_MS:
        trial.outcome.complaints.append(f"a lost transaction held its readers up for {stuck_ms:.0f} ms")
    trial.judge(topic, [sender], [reader])
    kept = [each.value for each in reader.records if each.value.startswith("open.")]
    if kept:
        trial.outcome.complaints.append(f"{len(kept)} records of a transaction that nobody committed were read")
