"""Apache Kafka's ReplicaVerificationTool reads all replicas of a topic, and finds them equal."""

from __future__ import annotations

import re
import subprocess

from tests import apache_kafka
from tests.clusters import running_cluster
from tests.faults.clients import create_topic
from tests.suites.test_verifiable import fill
from tests.suites.tools import REPLICA_VERIFICATION

PARTITIONS = 3
RECORDS = 300
REPORT = re.compile(r"max lag is (\d+) for partition orders-\d at offset (\d+) among (\d) partitions")


def test_replicas_are_equal(broker_kind: str) -> None:
    with running_cluster(broker_kind.partition("*")[0], properties={"default.replication.factor": "3"}) as cluster:
        create_topic(cluster.bootstrap_servers, "orders", partitions=PARTITIONS)
        fill(cluster.bootstrap_servers, "orders", partitions=PARTITIONS, count=RECORDS)
        told = verification(cluster.bootstrap_servers)
    lag, offset, count = map(int, told[-1])
    assert (lag, offset, count) == (0, RECORDS // PARTITIONS, PARTITIONS)


def verification(bootstrap: str) -> list[tuple[str, str, str]]:
    """All reports up to the first that is about the ends of the logs; the tool itself would go on for ever."""
    words = ("--broker-list", bootstrap, "--topics-include", "orders", "--time", "-2", "--report-interval-ms", "500")
    command = apache_kafka.java_command(REPLICA_VERIFICATION, *words)
    found: list[tuple[str, str, str]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
        assert tool.stdout is not None
        try:
            for line in tool.stdout:
                assert "doesn't match" not in line, line
                assert "checksum" not in line, line
                found += REPORT.findall(line)
                if found and int(found[-1][1]) == RECORDS // PARTITIONS:
                    break
        finally:
            tool.kill()
    return found
