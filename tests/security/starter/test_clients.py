"""Settings of clients: no secret where it is not asked for, and every password survives its quotes."""

from __future__ import annotations

from pathlib import Path

from moldau.core.config.load import parse_properties
from moldau.security.jaas import login_module
from moldau.security.starter.clients import Login, properties_text

AWKWARD = Login("alice", 'a "quoted" \\ secret', Path("/ca.pem"))


def test_a_password_with_quotes_and_backslashes_is_read_back() -> None:
    read = parse_properties(properties_text(AWKWARD.java("localhost:9092")))
    module = login_module(read["sasl.jaas.config"], "SCRAM-SHA-512")
    assert (module.username, module.password) == (AWKWARD.user, AWKWARD.password)


def test_a_login_shows_no_password() -> None:
    assert "secret" not in repr(AWKWARD)
