"""Apache Kafka's kafka-delegation-tokens prints of our tokens what it prints of Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

from tests.clients.drivers import LineProcess
from tests.security.token_brokers import running_with_tokens
from tests.suites.test_secured_listeners import round_trip
from tests.suites.token_commands import Desk, transcript
from tests.suites.tools import ACLS, TRANSCRIPTS, Tools


def test_every_command_prints_what_it_prints_of_apache_kafka(broker_kind: str, tool_process: LineProcess) -> None:
    with running_with_tokens(broker_kind.partition("*")[0]) as addresses:
        told = transcript(tool_process, addresses)
    assert told.splitlines() == (TRANSCRIPTS / "tokens.txt").read_text().splitlines()


def test_javas_clients_log_in_with_a_token(broker_kind: str, tool_process: LineProcess, tmp_path: Path) -> None:
    """With the rights of the token's owner."""
    with running_with_tokens(broker_kind.partition("*")[0]) as addresses:
        tools = Tools(tool_process, addresses.plain)
        rights = ("--allow-principal", "User:alice", "--operation", "All", "--topic", "alices", "--group", "*")
        assert tools.run(ACLS, "--add", *rights).exit_code == 0
        desk = Desk(tool_process, addresses, tmp_path)
        assert desk.run("alice", ["--create", "--max-life-time-period", "-1"]).exit_code == 0
        round_trip(tool_process, addresses.secured, "alices", desk.settings("token"))
