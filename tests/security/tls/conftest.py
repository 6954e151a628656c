"""An authority with a broker's and a client's certificates, made once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from moldau.security.tls.issuing import new_authority, new_client, new_server
from tests.security.tls.world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    now = datetime.now(UTC)
    authority = new_authority(name="Test CA", now=now)
    server = new_server(authority, hosts=["localhost", "127.0.0.1"], now=now)
    client = new_client(authority, name="alice", now=now)
    return World(authority, server, client, tmp_path_factory.mktemp("tls"), now.timestamp())
