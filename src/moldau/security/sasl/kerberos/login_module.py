"""What the options of Java's Krb5LoginModule say about the one who logs in, or lets others log in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.security.jaas import InvalidJaasConfig, LoginModule
from moldau.security.sasl.kerberos.library import ANY_PRINCIPAL, Keytab

SERVICE_NAME_KEY = "sasl.kerberos.service.name"


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    keytab: Keytab
    service_name: str
    """Of the servers: their principals are service/host."""


def kerberos_login(module: LoginModule, service_name: str | None, *, is_initiator: bool) -> KerberosLogin:
    """`service_name` is that of the configuration. InvalidJaasConfig for what could not work.

    A broker logs in by its key table alone. Kafka can also use tickets that kinit left in a cache and run kinit to
    renew them, which ends when they can't be renewed any more; so that is refused instead of working for a week.
    """
    options = module.options
    if not _is_true(options.get("useKeyTab")):
        raise InvalidJaasConfig('a broker needs the key of its principal: set useKeyTab=true and keyTab="/path"')
    for option in ("keyTab", "principal"):
        if not options.get(option):
            raise InvalidJaasConfig(f"GSSAPI needs {option}, which is not set")
    principal = options["principal"]
    if is_initiator and principal == ANY_PRINCIPAL:
        raise InvalidJaasConfig("principal is *, and to log in to others a broker has to be somebody")
    return KerberosLogin(Keytab(principal, _path(options["keyTab"])), _service_name(options, service_name))


def _service_name(options: Mapping[str, str], configured: str | None) -> str:
    own = options.get("serviceName")
    if own and configured and own != configured:
        raise InvalidJaasConfig(
            f"serviceName is not that of {SERVICE_NAME_KEY}, which is {configured}; leave out one of them"
        )
    found = own or configured
    if not found:
        raise InvalidJaasConfig(f"no service name: set {SERVICE_NAME_KEY}, or serviceName here, mostly to kafka")
    return found


def _path(text: str) -> str:
    return text[len("FILE:") :] if text.upper().startswith("FILE:") else text


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"
