"""Certificates for channels between brokers."""

from __future__ import annotations

from tests.security.tls.conftest import world

__all__ = ["world"]
