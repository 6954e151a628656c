"""Three brokers whose replicas are read until somebody has seen enough."""

from __future__ import annotations

import re
import signal
import subprocess

import moldau
from tests.cli.conftest import RUN_S_MAX, command, environment
from tests.faults.clients import create_topic
from tests.suites.test_verifiable import fill

PARTITIONS, RECORDS = 3, 30
REPORT = re.compile(r"max lag is (\d+) for partition orders-\d at offset (\d+) among (\d) partitions\n")
INTERRUPTED = 130


def test_replicas_are_equal_until_it_is_interrupted() -> None:
    words = ("--topics-include", "orders|none", "--time", "-2", "--report-interval-ms", "50", "--max-wait-ms", "50")
    with moldau.run(brokers=3, overrides={"default.replication.factor": "3"}) as cluster:
        create_topic(cluster.bootstrap_servers, "orders", partitions=PARTITIONS)
        fill(cluster.bootstrap_servers, "orders", partitions=PARTITIONS, count=RECORDS)
        with subprocess.Popen(
            command("replica-verification", "--broker-list", cluster.bootstrap_servers, *words),
            env=environment("localhost:1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as tool:
            assert tool.stdout is not None
            assert tool.stderr is not None
            assert tool.stdout.readline().endswith(": verification process is started\n")
            for line in tool.stdout:
                report = REPORT.search(line)
                assert report is not None, line
                if report.groups() == ("0", str(RECORDS // PARTITIONS), str(PARTITIONS)):
                    break
            tool.send_signal(signal.SIGINT)
            assert tool.wait(RUN_S_MAX) == INTERRUPTED
            assert tool.stderr.read() == ""
