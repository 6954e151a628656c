"""What changes something prints one JSON value, too: of what was done, and of what was not."""

from __future__ import annotations

import json
from argparse import _SubParsersAction
from typing import Any

import pytest

from moldau.cli.completion.answering import parser_of_tool
from moldau.cli.main import main
from moldau.cli.tools import TOOLS

ASKING_CLUSTERS = ("topics", "groups", "acls", "users", "quotas", "dead-letters")


@pytest.mark.parametrize("name", ASKING_CLUSTERS)
def test_every_action_says_what_it_did_in_any_form(name: str) -> None:
    module = TOOLS[name].module
    assert module is not None
    (actions,) = [each for each in parser_of_tool(module)._actions if isinstance(each, _SubParsersAction)]
    assert [each for each, made in actions.choices.items() if "--output" not in made._option_string_actions] == []


def one_value(capsys: pytest.CaptureFixture[str], bootstrap: str, line: str) -> tuple[int, Any]:
    code = main([*line.split(), "--bootstrap-server", bootstrap, "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_topics(bootstrap: str, moldau_topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    topic, missing = moldau_topic, f"{moldau_topic}-missing"
    taken = {"topic": topic, "error": f"topic '{topic}' already exists; --if-not-exists accepts that"}
    gone = {"topic": missing, "error": f"topic '{missing}' does not exist; --if-exists accepts that"}
    altered = {"topic": topic, "done": "altered", "partitions": 3, "configs": {"cleanup.policy": "compact"}}
    for line, code, rows in (
        (f"topics create {topic}", 0, [{"topic": topic, "done": "created"}]),
        (f"topics create {topic}", 1, [taken]),
        (f"topics create {topic} --if-not-exists", 0, []),
        (f"topics alter {topic} --partitions 3 --config cleanup.policy=compact", 0, [altered]),
        (f"topics trim {topic} --before 0 -p 0 --yes", 0, [{"partition": 0, "start": 0, "deleted": 0}]),
        (f"topics delete {topic} {missing} --yes", 1, [{"topic": topic, "done": "deleted"}, gone]),
    ):
        assert one_value(capsys, bootstrap, line) == (code, rows), line


def test_users_and_quotas(bootstrap: str, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    (tmp_path / "secret").write_text("secret\n")
    user, limits = {"user": "eve", "mechanisms": ["SCRAM-SHA-512"]}, {"producer_byte_rate": 1000.0}
    for line, rows in (
        (f"users add eve --password-file {tmp_path}/secret", [{**user, "done": "added"}]),
        ("users delete eve --yes", [{**user, "done": "deleted"}]),
        ("quotas set user=eve producer_byte_rate=1000", [{"entity": {"user": "eve"}, "quotas": limits, "done": "set"}]),
    ):
        assert one_value(capsys, bootstrap, line) == (0, rows), line
    removed = {"entity": {"user": "eve"}, "quotas": {"producer_byte_rate": None}, "done": "deleted"}
    assert one_value(capsys, bootstrap, "quotas delete user=eve") == (0, [removed])
    code, told = one_value(capsys, bootstrap, "users delete eve")
    assert (code, [*told]) == (1, ["error"])
