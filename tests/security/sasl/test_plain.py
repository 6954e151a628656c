"""PLAIN: who is let in, and what everybody else is told."""

from __future__ import annotations

import pytest

from moldau.security.sasl.mechanism import SaslAuthenticationError, SaslError, Success
from moldau.security.sasl.plain import PlainClient, PlainServer
from tests.security.sasl.exchanges import NOW_MS, PASSWORDS, run


class Passwords:
    def lookup(self, user: str) -> str | None:
        return PASSWORDS.get(user)


SERVER = PlainServer(Passwords())


def refusal(token: bytes) -> str:
    with pytest.raises(SaslAuthenticationError) as refused:
        SERVER.evaluate(token, NOW_MS)
    return str(refused.value)


@pytest.mark.parametrize("user", PASSWORDS)
def test_a_user_logs_in_with_the_password(user: str) -> None:
    assert run(PlainClient(user, PASSWORDS[user]), SERVER) == Success(user)


def test_an_unknown_user_and_a_wrong_password_get_the_same_answer() -> None:
    expected = "Authentication failed: Invalid username or password"
    assert refusal(b"\0alice\0wrong") == refusal(b"\0nobody\0wrong") == expected


def test_the_authorization_id_may_only_be_the_user() -> None:
    assert SERVER.evaluate(b"alice\0alice\0alice-secret", NOW_MS) == Success("alice")
    expected = "Authentication failed: Client requested an authorization id that is different from username"
    assert refusal(b"admin\0alice\0alice-secret") == expected
    assert refusal(b"admin\0alice\0wrong") == "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0" * 9, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0\xff", "Invalid SASL/PLAIN response: expected UTF-8"),
    ],
)
def test_what_is_no_login_is_told_so(token: bytes, message: str) -> None:
    assert refusal(token) == message


def test_an_empty_password_in_the_configuration_lets_nobody_in() -> None:
    class NoPassword:
        def lookup(self, user: str) -> str | None:
            return ""

    with pytest.raises(SaslError):
        PlainServer(NoPassword()).evaluate(b"\0alice\0x", NOW_MS)


def test_a_client_says_nothing_twice_and_shows_no_password() -> None:
    client = PlainClient("alice", "alice-secret")
    response = client.evaluate(b"")
    assert response is not None
    with pytest.raises(SaslError, match="after the exchange was complete"):
        response.next.evaluate(b"more")
    assert "alice-secret" not in repr(client)
