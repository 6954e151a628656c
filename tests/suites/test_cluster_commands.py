"""Apache Kafka's tools for clusters print of three brokers of ours what they print of three of Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.drivers import LineProcess
from tests.clusters import running_cluster
from tests.suites.cluster_commands import CHAPTERS, PROPERTIES, transcript
from tests.suites.tools import TRANSCRIPTS

# On a busy machine these two depend on how fast brokers are: scripts/client-suites runs them.
WITH_LONG = [pytest.param(each, marks=[pytest.mark.long] if each in ("moves", "unclean") else []) for each in CHAPTERS]


@pytest.mark.parametrize("chapter", WITH_LONG)
def test_every_command_prints_what_it_prints_of_apache_kafka(
    broker_kind: str, tool_process: LineProcess, chapter: str, tmp_path: Path
) -> None:
    with running_cluster(broker_kind.partition("*")[0], properties=PROPERTIES) as cluster:
        told = list(transcript(cluster, tool_process, chapter, scratch=tmp_path))
    assert told == (TRANSCRIPTS / f"cluster-{chapter}.txt").read_text().splitlines()
