"""Tokens that a client logs in with: when an issuer is asked, what is told of it, and what is not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moldau.security.sasl.oauthbearer.retrieval import TOKEN_BYTES_MAX, NoToken, TokenEndpoint, TokenRetriever
from tests.node.securing.secured import Keys, make_keys
from tests.security.sasl.issuing import CLIENT, SECRET, Issuer, running_issuer


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def issuer(keys: Keys) -> Iterator[Issuer]:
    numbers = itertools.count(1)
    with running_issuer(keys.broker, lambda: f"token-{next(numbers)}") as running:
        yield running


@pytest.fixture
def endpoint(issuer: Issuer, keys: Keys) -> TokenEndpoint:
    return TokenEndpoint(issuer.url, CLIENT, SECRET, "kafka", keys.trusted.read_text())


def test_a_token_is_used_until_it_grows_old(issuer: Issuer, endpoint: TokenEndpoint) -> None:
    now_s = [0.0]
    retriever = TokenRetriever(endpoint, lambda: now_s[0])
    for at_s, expected in ((0, "token-1"), (479, "token-1"), (480, "token-2"), (481, "token-2"), (2_000, "token-3")):
        now_s[0] = at_s
        assert retriever() == expected, at_s
    assert issuer.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}] * 3


def test_seconds_may_be_text(issuer: Issuer, endpoint: TokenEndpoint) -> None:
    issuer.lasts = "600"
    retriever = TokenRetriever(endpoint)
    assert [retriever(), retriever()] == ["token-1", "token-1"]


@pytest.mark.parametrize("lasts", [None, -1, 0, 1e12, float("nan"), float("inf"), "soon", [600]], ids=repr)
def test_a_token_that_lasts_nobody_knows_how_long_is_used_once(
    lasts: Any, issuer: Issuer, endpoint: TokenEndpoint
) -> None:
    issuer.lasts = lasts
    retriever = TokenRetriever(replace(endpoint, scope=""))
    assert [retriever(), retriever()] == ["token-1", "token-2"]
    assert issuer.asked == [{"grant_type": ["client_credentials"]}] * 2


@pytest.mark.parametrize(
    ("status", "content", "told"),
    [
        (400, b'{"error": "invalid_scope", "error_description": "no such scope"}', "it answers 400 no such scope"),
        (503, b"<html>later</html>", "it answers 503"),
        (302, b"", "it answers 302"),
        (200, b"{}", "there is no access_token in its answer"),
        (200, b'{"access_token": 7}', "there is no access_token in its answer"),
        (200, b"[" * 100_000, "there is no access_token in its answer"),
        (200, bytes(TOKEN_BYTES_MAX + 1), "there is no access_token in its answer"),
    ],
)
def test_no_token_is_told_with_the_reason(
    status: int, content: bytes, told: str, issuer: Issuer, endpoint: TokenEndpoint
) -> None:
    issuer.answer = lambda: (status, content)
    with pytest.raises(NoToken) as wrong:
        TokenRetriever(endpoint)()
    assert wrong.value.strerror == f"{issuer.url}: {told}"


def test_a_wrong_secret_is_in_no_message(endpoint: TokenEndpoint) -> None:
    wrong = replace(endpoint, client_secret="not the one")
    with pytest.raises(NoToken, match="it answers 401 invalid_client") as told:
        TokenRetriever(wrong)()
    assert "not the one" not in f"{told.value} {wrong}"


def test_an_issuer_that_nobody_trusts_hears_no_secret(issuer: Issuer, endpoint: TokenEndpoint) -> None:
    with pytest.raises(NoToken, match=r"(?i)certificate.verify.failed"):
        TokenRetriever(replace(endpoint, authorities=None))()
    assert issuer.asked == []


def test_a_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "a token.jwt"
    retriever = TokenRetriever(TokenEndpoint(file.as_uri()))
    with pytest.raises(OSError, match="No such file"):
        retriever()
    for token in ("one", "two"):
        file.write_text(f"{token}\n")
        assert retriever() == token


@pytest.mark.parametrize(
    ("endpoint", "is_usable"),
    [
        (TokenEndpoint("file:///run/token.jwt"), True),
        (TokenEndpoint("file://elsewhere/run/token.jwt"), False),
        (TokenEndpoint("https://issuer/token", "app", "secret"), True),
        (TokenEndpoint("https://issuer/token", "app"), False),
        (TokenEndpoint("http://issuer/token", "app", "secret"), False),
        (TokenEndpoint("", "app", "secret"), False),
    ],
)
def test_secrets_go_over_tls_alone(endpoint: TokenEndpoint, is_usable: bool) -> None:
    assert endpoint.is_usable is is_usable
