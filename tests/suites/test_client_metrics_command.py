"""`moldau client-metrics` beside Apache Kafka's class on one cluster."""

from __future__ import annotations

import uuid

import pytest

from moldau.core.ids import parse_uuid
from tests.suites.beside import check_session, told_by_kafka, told_by_us
from tests.suites.tools import Tools

USED = """
--describe --name {topic}
--alter --name {topic} --interval 60000 --metrics org.apache.kafka.consumer.,org. --match client_id=a.*
--describe --name {topic}
--alter --name {topic} --metrics a --metrics b,,c --match client_id=x,client_source_port=1.*
--describe --name {topic}
--alter --name {topic} --interval= --match=
--describe --name {topic}
--alter --name {topic}
--alter --name {topic} --interval 99
--alter --name {topic} --match nope=1
--delete --name {topic}
--describe --name {topic}
--delete --name {topic}
"""
REFUSED = """
--list --describe
--name {topic}
--alter
--alter --name {topic} --generate-name
--alter --name {topic} --interval soon
--alter --name {topic} --interval 99999999999
--delete
--delete --name {topic} --metrics a
--describe --name {topic} --interval 100
--describe --generate-name
--list --name {topic}
--list --match client_id=a
"""


@pytest.mark.parametrize("session", [USED, REFUSED], ids=["used", "refused"])
def test_client_metrics(tools: Tools, session: str) -> None:
    names = f"theirs-{uuid.uuid4().hex[:10]}", f"moldaus-{uuid.uuid4().hex[:10]}"
    check_session(tools, "client-metrics", session, topics=names)


def test_all_subscriptions(tools: Tools) -> None:
    names = []
    for tell in (told_by_kafka, told_by_us):
        done, (line,), _ = tell(tools, "client-metrics", "--alter --generate-name --metrics x --match client_id=nobody")
        assert done
        names.append(line.removeprefix("Altered client metrics config for ").removesuffix("."))
        assert parse_uuid(names[-1])
    for line in ("--list", "--describe"):
        (done, theirs, _), (is_done, ours, _) = (
            tell(tools, "client-metrics", line) for tell in (told_by_kafka, told_by_us)
        )
        assert (is_done, ours) == (done, theirs)
        assert all(any(name in each for each in ours) for name in names)
    for name, tell in zip(names, (told_by_us, told_by_kafka), strict=True):
        assert tell(tools, "client-metrics", f"--delete --name {name}")[0]
    for tell in (told_by_us, told_by_kafka):
        assert not [line for line in tell(tools, "client-metrics", "--list")[1] if line in names]
