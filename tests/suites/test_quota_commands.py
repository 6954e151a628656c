"""Apache Kafka's ConfigCommand prints of our quotas what it prints of Apache Kafka's."""

from __future__ import annotations

import pytest

from moldau.broker.handlers import TABLE
from moldau.wire.api import ApiKey
from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.suites.quota_commands import CHAPTERS, transcript
from tests.suites.tools import TRANSCRIPTS, Tools

has_scram = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS in {row.key for row in TABLE}
needs_scram = pytest.mark.skipif(not has_scram, reason="the tool asks for a user's SCRAM credentials as well")


@pytest.mark.parametrize(
    "chapter", [pytest.param(each, marks=[needs_scram] if each == "users" else []) for each in CHAPTERS]
)
def test_every_command_prints_what_it_prints_of_apache_kafka(
    broker_kind: str, tool_process: LineProcess, chapter: str
) -> None:
    with running_broker(broker_kind) as bootstrap:
        told = transcript(Tools(tool_process, bootstrap), chapter)
    assert told.splitlines() == (TRANSCRIPTS / f"quotas-{chapter}.txt").read_text().splitlines()
