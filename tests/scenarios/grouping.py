"""Apache Kafka's OffsetValidationTest.test_broker_rolling_bounce: brokers are restarted, and a group does not notice.

The producer beside the group has its library's default retries, and none of its records may fail.
"""

from __future__ import annotations

from tests.scenarios.judging import judge
from tests.scenarios.trial import PARTITIONS, TOPIC, Trial

MEMBERS = 3
BOUNCES = 5


def rolling_bounces(trial: Trial, client: str, *, protocol: str, bounces: int = BOUNCES) -> None:
    trial.create_topic(TOPIC)
    sender, members = trial.send(client, rate=200), trial.join(client, count=MEMBERS, protocol=protocol)

    def is_spread() -> bool:
        owned = sorted(partition for member in members for partition in member.assigned)
        return owned == list(range(PARTITIONS)) and all(member.assigned for member in members)

    trial.until(is_spread, "the group is not stable")
    before = [member.assignments for member in members]
    for _ in range(bounces):
        for broker in trial.cluster.brokers.values():
            trial.restart(broker, clean=True)
            read = [len(member.records) for member in members]
            trial.until(
                lambda: all(len(member.records) > count for member, count in zip(members, read, strict=True)),  # noqa: B023
                "a member reads nothing more",
            )
            trial.await_in_sync()
    sender.stop()
    trial.await_read(sender, members)
    judge(trial.outcome, sender, members)
    rebalances = [member.assignments - count for member, count in zip(members, before, strict=True)]
    trial.outcome.figures["rebalances"] = str(max(rebalances))
    trial.outcome.forbid([count for count in rebalances if count], "members saw a rebalance")
    for member in members:
        trial.outcome.forbid(member.complaints, "complaints of a member")
    trial.compare_replicas()
