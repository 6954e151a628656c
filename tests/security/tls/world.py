"""Certificates that tests share, and settings that name them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moldau.security.tls.issuing import Identity, new_authority, new_client, new_server
from moldau.security.tls.settings import TlsSettings


@dataclass(frozen=True, slots=True)
class World:
    authority: Identity
    server: Identity
    client: Identity
    folder: Path
    now_s: float

    def settings(self, identity: Identity | None, **others: Any) -> TlsSettings:
        """Everything inline; the authority is trusted."""
        inline: dict[str, Any] = {
            "truststore_type": "PEM",
            "truststore_certificates": self.authority.certificate_pem().decode(),
        }
        if identity is not None:
            inline |= {
                "keystore_type": "PEM",
                "keystore_key": identity.key_pem().decode(),
                "keystore_certificate_chain": identity.certificate_pem().decode(),
            }
        return TlsSettings(**inline | others)


def make_world(folder: Path) -> World:
    now = datetime.now(UTC)
    authority = new_authority(name="Test CA", now=now)
    server = new_server(authority, hosts=["localhost", "127.0.0.1"], now=now)
    client = new_client(authority, name="alice", now=now)
    return World(authority, server, client, folder, now.timestamp())
