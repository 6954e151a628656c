"""What Kafka's `ssl.*` keys say about one listener, or about the clients inside a broker, as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

PREFIX = "ssl."
PROTOCOLS = ("TLSv1.2", "TLSv1.3")
NONE, REQUESTED, REQUIRED = "none", "requested", "required"
PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"


class TlsConfigError(Exception):
    """A setting that no context can be made of, in one line that begins with its key and holds no secret."""

    def __init__(self, key: str, what: str) -> None:
        self.key = key
        self.what = what
        super().__init__(f"{key}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """A field is its key without `ssl.`, underscores for dots, and has Kafka's default. Secrets are not printed."""

    keystore_type: str = JKS
    keystore_location: str | None = None
    keystore_password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = field(default=None, repr=False)
    truststore_type: str = JKS
    truststore_location: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    truststore_certificates: str | None = field(default=None, repr=False)
    enabled_protocols: tuple[str, ...] = PROTOCOLS
    cipher_suites: tuple[str, ...] = ()
    client_auth: str = NONE
    endpoint_identification_algorithm: str | None = "https"

    @staticmethod
    def from_keys(values: Mapping[str, Any]) -> TlsSettings:
        """Of parsed values by Kafka's names; a key that is absent or None has its default."""
        found = {one.name: values.get(key_of(one.name)) for one in fields(TlsSettings)}
        return TlsSettings(**{name: value for name, value in found.items() if value is not None})


def key_of(name: str) -> str:
    return PREFIX + name.replace("_", ".")


@contextmanager
def naming_files(settings: TlsSettings) -> Iterator[None]:
    """Errors of what is in a file name it: one listener may have another file than the next."""
    try:
        yield
    except TlsConfigError as wrong:
        of_keys = {
            "ssl.keystore.location": settings.keystore_location,
            "ssl.truststore.location": settings.truststore_location,
        }
        path = of_keys.get(wrong.key)
        if path is None or path in wrong.what:
            raise
        raise TlsConfigError(wrong.key, f"{path}: {wrong.what}") from None
