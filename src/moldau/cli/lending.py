"""A server that logs in to a cluster lends its rights to everybody who reaches it: that has to be meant."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.failures import UsageError

EVERYBODY = "--authentication none (everybody)"


def has_login(client: Mapping[str, str]) -> bool:
    protocol = client.get("security.protocol", "plaintext").lower()
    return protocol.startswith("sasl_") or any(key.startswith(("ssl.certificate", "ssl.keystore")) for key in client)


def lends(server: str, ways: str) -> UsageError:
    """`ways` to say who may come in."""
    return UsageError(
        f"the {server} logs in to the cluster, and whoever reaches it would have its rights; say who may: {ways}"
    )
