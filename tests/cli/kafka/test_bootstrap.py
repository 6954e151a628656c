"""Options may stand before the action, as they do in Apache Kafka's own tools."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.bootstrap import behind_action


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("describe --status", "describe --status"),
        ("--bootstrap-controller a:1 describe --status", "describe --bootstrap-controller a:1 --status"),
        ("--bootstrap-server=a:1 --command-config f list", "list --bootstrap-server=a:1 --command-config f"),
        ("--help", "--help"),
        ("", ""),
    ],
)
def test_options_that_lead(given: str, taken: str) -> None:
    assert behind_action(given.split()) == taken.split()
