"""Apache Kafka's ReplicaVerificationTool and ours read all replicas of a topic, and find them equal."""

from __future__ import annotations

import re
import subprocess

from tests import apache_kafka
from tests.cli.conftest import command
from tests.clusters import running_cluster
from tests.faults.clients import create_topic
from tests.suites.test_verifiable import fill
from tests.suites.tools import REPLICA_VERIFICATION

PARTITIONS = 3
RECORDS = 300
WORDS = "--topics-include orders --time -2 --report-interval-ms 500"
REPORT = re.compile(r"max lag is (\d+) for partition orders-\d at offset (\d+) among (\d) partitions")


def test_replicas_are_equal(broker_kind: str) -> None:
    with running_cluster(broker_kind.partition("*")[0], properties={"default.replication.factor": "3"}) as cluster:
        create_topic(cluster.bootstrap_servers, "orders", partitions=PARTITIONS)
        fill(cluster.bootstrap_servers, "orders", partitions=PARTITIONS, count=RECORDS)
        told = [
            verification(start(f"--broker-list {cluster.bootstrap_servers} {WORDS}".split())) for start in (java, ours)
        ]
    for each in told:
        lag, offset, count = map(int, each[-1])
        assert (lag, offset, count) == (0, RECORDS // PARTITIONS, PARTITIONS)


def java(words: list[str]) -> list[str]:
    return apache_kafka.java_command(REPLICA_VERIFICATION, *words)


def ours(words: list[str]) -> list[str]:
    return command("replica-verification", *words)


def verification(words: list[str]) -> list[tuple[str, str, str]]:
    """All reports up to the first that is about the ends of the logs; the tool itself would go on for ever."""
    found: list[tuple[str, str, str]] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
        assert tool.stdout is not None
        try:
            for told in tool.stdout:
                assert "doesn't match" not in told, told
                assert "checksum" not in told, told
                found += REPORT.findall(told)
                if found and int(found[-1][1]) == RECORDS // PARTITIONS:
                    break
        finally:
            tool.kill()
    return found
