"""Our tools print of a cluster, be it of our brokers or of Apache Kafka's, what Apache Kafka's tools print of theirs.

The transcripts are those that hold our brokers to Apache Kafka's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.clusters import running_cluster
from tests.suites import transaction_commands
from tests.suites.cluster_commands import PROPERTIES, transcript
from tests.suites.moldau_tools import OurTools, plainly
from tests.suites.tools import TRANSCRIPTS, Tools

LONG = [pytest.mark.long]


@pytest.mark.parametrize(
    "chapter",
    ["members", "brokers-go", pytest.param("moves", marks=LONG), pytest.param("unclean", marks=LONG)],
)
def test_tools_for_clusters(broker_kind: str, tool_process: LineProcess, chapter: str, tmp_path: Path) -> None:
    with running_cluster(broker_kind.partition("*")[0], properties=PROPERTIES) as cluster:
        told = list(transcript(cluster, OurTools(tool_process), chapter, scratch=tmp_path))
    expected = (TRANSCRIPTS / f"cluster-{chapter}.txt").read_text().splitlines()
    assert plainly(told) == plainly(expected)


def test_transactions(broker_kind: str) -> None:
    with running_broker(broker_kind, properties=transaction_commands.PROPERTIES) as bootstrap:
        told = transaction_commands.transcript(Tools(OurTools(), bootstrap))
    assert plainly(told.splitlines()) == plainly((TRANSCRIPTS / "transactions.txt").read_text().splitlines())
