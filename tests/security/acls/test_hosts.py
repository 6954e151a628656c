"""The right column is what java.net.InetAddress.getHostAddress prints."""

from __future__ import annotations

import pytest

from moldau.security.acls.hosts import host_address


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a0B", "2001:db8:0:0:0:0:0:a0b"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_addresses_are_spelled_as_acls_spell_them(host: str, address: str) -> None:
    assert host_address(host) == address
