"""All brokers are restarted one after the other, and a group that reads meanwhile does not notice."""

from __future__ import annotations

from pathlib import Path

import moldau
from tests.cluster.asking import until
from tests.scenarios.clients import CLASSIC, CONSUMER, RdkafkaMember, RdkafkaSender
from tests.scenarios.judging import Outcome, judge

ALL = frozenset({0, 1, 2})


def test_groups_read_on(tmp_path: Path) -> None:
    """Of either protocol: no rebalance, nothing lost, nothing read twice, and no send fails."""
    with moldau.run(brokers=3, overrides={"offsets.topic.num.partitions": 3}) as cluster:
        cluster.create_topic("read", partitions=3, replication_factor=3, config={"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap_servers
        sender = RdkafkaSender(tmp_path, bootstrap, "read", rate=200)
        groups = {
            protocol: [
                RdkafkaMember(tmp_path, bootstrap, "read", protocol, f"{protocol}-{number}", protocol=protocol)
                for number in range(3)
            ]
            for protocol in (CLASSIC, CONSUMER)
        }
        members = [member for group in groups.values() for member in group]
        try:
            until(lambda: all(len(member.assigned) == 1 and member.records for member in members))
            before = [member.assignments for member in members]
            for broker_id in cluster.brokers:
                cluster.restart(broker_id)
                until(lambda: set(cluster.seen("read").in_sync.values()) == {ALL})
            sender.stop()
            sent = {record.value for record in sender.progress.acknowledged}
            for group in groups.values():
                until(lambda: sent <= {record.value for member in group for record in member.records})  # noqa: B023
                outcome = Outcome()
                judge(outcome, sender, group)
                assert outcome.complaints == []
            assert [member.assignments for member in members] == before
            assert [member.complaints for member in members] == [[]] * len(members)
        finally:
            sender.stop()
            for member in members:
                member.stop()
