"""A listener's GSSAPI by its configuration: the key that tickets are for, and the names that principals get."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigConflict
from moldau.core.config.listener_security import JAAS_CONFIG, ListenerSecurity
from moldau.security.jaas import InvalidJaasConfig, login_module
from moldau.security.sasl.kerberos.exchange import GssapiServer
from moldau.security.sasl.kerberos.library import Acceptor, KerberosUnusable, default_realm
from moldau.security.sasl.kerberos.login_module import SERVICE_NAME_KEY, kerberos_login
from moldau.security.sasl.kerberos.short_names import InvalidRule, Rule, ShortNamer, parse_rules
from moldau.security.sasl.mechanism import GSSAPI

RULES_KEY = "sasl.kerberos.principal.to.local.rules"


class KerberosListener:
    """Begins exchanges. ConfigError, when it is made, for what no client could log in with."""

    def __init__(self, security: ListenerSecurity) -> None:
        key, name = security.key_of(JAAS_CONFIG, GSSAPI), security.listener.name
        rules = _rules(security)
        try:
            module = login_module(security.text(JAAS_CONFIG, GSSAPI) or "", GSSAPI)
            login = kerberos_login(module, service_name(security), is_initiator=False)
            self._acceptor = Acceptor.of(login.keytab)
            self._names = ShortNamer(rules, default_realm())
        except (InvalidJaasConfig, KerberosUnusable) as wrong:
            raise ConfigConflict(key, None, f"{key}: {wrong} (listener {name})") from None

    def begin(self) -> GssapiServer:
        return GssapiServer(self._acceptor.accept(), self._names)


def service_name(security: ListenerSecurity) -> str | None:
    return security.text(SERVICE_NAME_KEY, GSSAPI)


def _rules(security: ListenerSecurity) -> tuple[Rule, ...]:
    texts = security.value(RULES_KEY, GSSAPI)
    assert isinstance(texts, tuple)
    try:
        return parse_rules(texts)
    except InvalidRule as wrong:
        key = security.key_of(RULES_KEY, GSSAPI)
        raise ConfigConflict(key, None, f"{key}: {wrong}") from None
