"""The way to a leader that does not answer."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from moldau.registry.forwarding import Forwarder, Question
from moldau.registry.storing.electing import Identity
from moldau.web.errors import ApiError


def asked(method: str, monkeypatch: pytest.MonkeyPatch, *, elected: bool) -> object:
    monkeypatch.setattr("moldau.registry.forwarding.ELECTED_S", 0.05 if not elected else 60.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    async def another_leader() -> None:
        await asyncio.sleep(0.1 if elected else 60.0)  # after the refusal of a port that nobody listens at

    async def ask() -> object:
        forwarder = Forwarder()
        try:
            return await forwarder.ask(
                Identity("127.0.0.1", port), Question(method, "/", {}, b"", "t"), another_leader()
            )
        finally:
            forwarder.close()

    return asyncio.run(ask())


def test_a_registration_waits_for_whoever_comes_after_a_dead_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked("POST", monkeypatch, elected=True) is None


@pytest.mark.parametrize(("method", "elected"), [("POST", False), ("DELETE", True)])
def test_others_are_told(monkeypatch: pytest.MonkeyPatch, method: str, elected: bool) -> None:
    with pytest.raises(ApiError) as refused:
        asked(method, monkeypatch, elected=elected)
    assert refused.value.code == 50_003


def test_a_leader_of_an_unknown_authority_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ssl.SSLCertVerificationError("self-signed certificate")

    monkeypatch.setattr("moldau.registry.forwarding.http.client.HTTPSConnection.connect", refuse)

    async def ask() -> None:
        forwarder = Forwarder()
        try:
            leader = Identity("127.0.0.1", 1, scheme="https")
            await forwarder.ask(leader, Question("POST", "/", {}, b"", "t"), asyncio.sleep(60))
        finally:
            forwarder.close()

    with pytest.raises(ApiError, match="self-signed"):
        asyncio.run(asyncio.wait_for(ask(), 10))
