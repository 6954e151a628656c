"""A server that logs in to a cluster lends its rights to everybody who reaches it: that has to be meant."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.failures import UsageError

WAYS = "--users FILE, --authentication passthrough (logins of the cluster), or --authentication none (everybody)"
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def has_login(client: Mapping[str, str]) -> bool:
    protocol = client.get("security.protocol", "plaintext").lower()
    return protocol.startswith("sasl_") or any(key.startswith(("ssl.certificate", "ssl.keystore")) for key in client)


def lends(server: str) -> UsageError:
    return UsageError(
        f"the {server} logs in to the cluster, and whoever reaches it would have its rights; say who may: {WAYS}"
    )


def check_passthrough(client: Mapping[str, str]) -> None:
    """Raises UsageError where the cluster cannot judge users by their passwords."""
    if not client.get("security.protocol", "plaintext").lower().startswith("sasl_"):
        raise UsageError("--authentication passthrough: the cluster has no logins: security.protocol is no SASL")
    mechanism = client.get("sasl.mechanism") or client.get("sasl.mechanisms")
    if mechanism not in PASSWORD_MECHANISMS:
        # By any other the server would log in as itself, whatever somebody's password is.
        raise UsageError(
            f"--authentication passthrough: the cluster has to judge passwords: sasl.mechanism={mechanism or ''};"
            f" expected one of {', '.join(PASSWORD_MECHANISMS)}"
        )
