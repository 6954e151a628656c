"""New certificates for connections to brokers, taken when the next connection is made."""

from __future__ import annotations

import errno
import logging
from datetime import UTC, datetime

import pytest

from moldau.security.tls import client_contexts
from moldau.security.tls.client_contexts import ClientTls
from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.issuing import new_client
from moldau.security.tls.settings import TlsConfigError, TlsSettings
from tests.security.tls.world import World


def subject(tls: ClientTls) -> str:
    return tls.current().chain[0].subject


def test_a_changed_file_counts_when_it_is_written_whole(world: World) -> None:
    store = world.folder / "client.pem"
    store.write_bytes(world.client.key_pem() + world.client.certificate_pem())
    settings = TlsSettings(keystore_type="PEM", keystore_location=str(store))
    tls = ClientTls(lambda: settings, now_s=lambda: world.now_s)
    first = tls.current()
    assert tls.current() is first
    bob = new_client(world.authority, name="bob", now=datetime.now(UTC))
    store.write_bytes(bob.key_pem() + bob.certificate_pem())
    assert tls.current() is first, "it may be half written"
    assert subject(tls) == "CN=bob"


def test_a_file_that_can_not_be_read_is_told_once_and_changes_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    store = world.folder / "broken.pem"
    store.write_bytes(world.client.key_pem() + world.client.certificate_pem())
    settings = TlsSettings(keystore_type="PEM", keystore_location=str(store))
    tls = ClientTls(lambda: settings, now_s=lambda: world.now_s)
    store.write_text("nothing of the kind")
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            assert subject(tls) == "CN=alice"
    assert [record.getMessage() for record in caplog.records] == [
        f"connections to brokers go on with the certificates that they have: ssl.keystore.location: {store} is no PEM"
    ]


def test_a_file_that_could_not_be_read_for_a_moment_is_taken_later(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may have no descriptor left; the file is as good as before."""
    store = world.folder / "later.pem"
    store.write_bytes(world.client.key_pem() + world.client.certificate_pem())
    settings = TlsSettings(keystore_type="PEM", keystore_location=str(store))
    tls = ClientTls(lambda: settings, now_s=lambda: world.now_s)
    bob = new_client(world.authority, name="bob", now=datetime.now(UTC))
    store.write_bytes(bob.key_pem() + bob.certificate_pem())

    def without_descriptors(*_: object, **__: object) -> LoadedTls:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(client_contexts, "client_tls", without_descriptors)
        for _ in range(4):
            assert subject(tls) == "CN=alice"
    assert len(caplog.records) == 1
    assert subject(tls) == "CN=bob"


def test_changed_settings_count_at_once(world: World) -> None:
    wanted = [world.settings(None)]
    tls = ClientTls(lambda: wanted[0], now_s=lambda: world.now_s)
    assert tls.current().chain == ()
    wanted[0] = world.settings(world.client)
    assert subject(tls) == "CN=alice"


def test_settings_that_nothing_can_be_made_of_are_refused(world: World) -> None:
    with pytest.raises(TlsConfigError, match="neither https nor empty"):
        ClientTls(lambda: world.settings(None, endpoint_identification_algorithm="ldaps"), now_s=lambda: world.now_s)
