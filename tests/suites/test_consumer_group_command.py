"""Apache Kafka's ConsumerGroupCommand prints of our groups what it prints of Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.suites.group_commands import transcript
from tests.suites.tools import TRANSCRIPTS, Tools


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_command_prints_what_it_prints_of_apache_kafka(
    broker_kind: str, tool_process: LineProcess, protocol: str, tmp_path: Path
) -> None:
    """The broker is a fresh one: some commands are about all groups there are."""
    with running_broker(broker_kind) as bootstrap:
        told = transcript(Tools(tool_process, bootstrap), protocol=protocol, scratch=tmp_path)
    assert told.splitlines() == (TRANSCRIPTS / f"groups-{protocol}.txt").read_text().splitlines()
