"""A cluster for a tool that asks it by our own messages: by its options, with TLS and logins as librdkafka has them."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.connection import client_settings
from moldau.cli.failures import UsageError
from moldau.client.cluster import Cluster, EndpointKind, words_of

if TYPE_CHECKING:
    from moldau.client.security import ConnectionSecurity

PLAINTEXT = "plaintext"


def open_cluster(options: Namespace, *, kind: EndpointKind = EndpointKind.BROKERS) -> Cluster:
    """Nothing is connected yet. What goes wrong later is told by `run_tool`."""
    return cluster_of(client_settings(options), timeout_s=options.timeout, kind=kind)


def cluster_of(settings: Mapping[str, str], *, timeout_s: float, kind: EndpointKind = EndpointKind.BROKERS) -> Cluster:
    """By a client's properties, of which none is left open."""
    return Cluster(
        settings["bootstrap.servers"],
        client_id=settings["client.id"],
        timeout_s=timeout_s,
        security=_security(settings),
        kind=kind,
    )


def _security(settings: Mapping[str, str]) -> ConnectionSecurity | None:
    """None for a plain connection."""
    protocol = settings.get("security.protocol", PLAINTEXT)
    if protocol.lower() == PLAINTEXT:
        return None
    from moldau.client.security import CHECKS_NAMES, MECHANISMS, PROTOCOLS, can_secure, name_check, security_of

    if protocol.lower() not in PROTOCOLS:
        raise UsageError(f"security.protocol={protocol}: expected one of {', '.join(PROTOCOLS)}")
    if name_check(settings) not in CHECKS_NAMES:
        raise UsageError(f"ssl.endpoint.identification.algorithm={name_check(settings)}: expected https or none")
    _check_files(settings)
    if not can_secure(settings):
        raise UsageError(
            f"security.protocol={protocol}: this tool needs files that are there (ssl.ca.location and others), and for"
            f" SASL sasl.username, sasl.password and sasl.mechanism, one of {', '.join(MECHANISMS)};"
            " OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url instead of a user and, if that is no file,"
            " sasl.oauthbearer.method=oidc, .client.id and .client.secret;"
            " GSSAPI needs `pip install 'moldau[gssapi]'`, and tickets or a keytab instead of a user"
        )
    try:
        return security_of(tuple(sorted(settings.items())))
    except OSError as wrong:
        raise UsageError(f"client configuration: {wrong}") from None


def _check_files(settings: Mapping[str, str]) -> None:
    for name in ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "https.ca.location"):
        path = settings.get(name, "")
        if path and path != "probe" and not os.path.exists(path):
            raise UsageError(f"client configuration: {name}: there is no file {path}")


def refusal(code: int, message: str | None) -> str:
    """A broker's own words, or those for its error code."""
    return message or words_of(code)
