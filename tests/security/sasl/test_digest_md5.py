"""DIGEST-MD5 of a client, by the example of RFC 2831, section 4."""

from __future__ import annotations

import pytest

from moldau.security.sasl.digest_md5 import DigestMd5Client
from moldau.security.sasl.mechanism import Response, SaslClient, SaslError

CHRIS = DigestMd5Client("chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")
CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
DIGEST, SERVERS_DIGEST = b"d388dad90d4bbd760a152321f2143af7", b"ea40f60335c427b5527b84dbabcdfffd"


def challenged(challenge: bytes = CHALLENGE, client: SaslClient = CHRIS) -> Response:
    first = client.evaluate(b"")
    assert first is not None
    assert first.token == b""
    response = first.next.evaluate(challenge)
    assert response is not None
    return response


def test_the_example_of_the_rfc() -> None:
    response = challenged()
    assert b"response=" + DIGEST in response.token
    assert response.next.evaluate(b"rspauth=" + SERVERS_DIGEST) is None


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    for rspauth in (b"rspauth=" + DIGEST, b""):
        with pytest.raises(SaslError, match="does not know the password"):
            challenged().next.evaluate(rspauth)


def test_a_name_with_quotes_is_escaped() -> None:
    token = challenged(client=DigestMd5Client('a"b\\', "p", "zookeeper/zk-sasl-md5", "c")).token
    assert b'username="a\\"b\\\\",' in token


@pytest.mark.parametrize("challenge", [b"", b"realm=x", b"\xff", b'nonce="open', b'nonce="n",qop="auth-conf"', b"=,="])
def test_a_challenge_that_is_none_is_refused(challenge: bytes) -> None:
    with pytest.raises(SaslError):
        challenged(challenge)


def test_a_password_is_in_no_repr() -> None:
    assert "secret" not in repr(CHRIS)
