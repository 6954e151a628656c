"""Apache Kafka's TransactionsCommand prints of our transactions what it prints of Apache Kafka's."""

from __future__ import annotations

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.suites.tools import TRANSCRIPTS, Tools
from tests.suites.transaction_commands import PROPERTIES, transcript


def test_every_command_prints_what_it_prints_of_apache_kafka(broker_kind: str, tool_process: LineProcess) -> None:
    with running_broker(broker_kind, properties=PROPERTIES) as bootstrap:
        told = transcript(Tools(tool_process, bootstrap))
    assert told.splitlines() == (TRANSCRIPTS / "transactions.txt").read_text().splitlines()
