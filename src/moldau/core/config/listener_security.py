"""What the keys of TLS and SASL say about one listener, by Kafka's precedence.

listener.name.<listener>.<mechanism>.<key>    for one mechanism of one listener
listener.name.<listener>.<key>                for one listener
<key>                                         for all of them
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.core.config.definitions import ConfigConflict, ConfigError, ConfigValue
from moldau.core.config.keys.security import SECURITY_KEYS
from moldau.core.config.listeners import ListenerConfig

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

PREFIX = "listener.name."
JAAS_CONFIG = "sasl.jaas.config"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
CLIENT_AUTH = "ssl.client.auth"
ENDPOINT_IDENTIFICATION = "ssl.endpoint.identification.algorithm"

# What a listener's TLS is made of; Kafka lets these change while a broker runs, for a listener by its prefix.
TLS_STORE_KEYS = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
)
TLS_KEYS = (*TLS_STORE_KEYS, "ssl.enabled.protocols", "ssl.cipher.suites", CLIENT_AUTH)
LISTENER_SECURITY_KEYS = (
    *TLS_KEYS,
    "ssl.principal.mapping.rules",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "sasl.enabled.mechanisms",
    "sasl.server.max.receive.size",
)
MECHANISM_KEYS = (
    JAAS_CONFIG,
    "connections.max.reauth.ms",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.kerberos.service.name",
    "sasl.kerberos.principal.to.local.rules",
)


_DEFINITIONS = {each.name: each for each in SECURITY_KEYS}


class ListenerSecurity:
    """The typed values of one listener."""

    __slots__ = ("_config", "_effective", "listener")

    def __init__(self, config: BrokerConfig, listener: ListenerConfig) -> None:
        self._config = config
        self._effective = config.layers.effective()
        self.listener = listener

    @property
    def uses_tls(self) -> bool:
        return self.listener.security.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.listener.security.startswith("SASL_")

    @property
    def mechanisms(self) -> tuple[str, ...]:
        found = self.value("sasl.enabled.mechanisms")
        assert isinstance(found, tuple)
        return found

    def key_of(self, key: str, mechanism: str | None = None) -> str:
        """The most particular name that is set, or else the most general one."""
        names = self._names(key, mechanism)
        return next((name for name in names if name in self._effective), names[-1])

    def is_set(self, key: str, mechanism: str | None = None) -> bool:
        return self.key_of(key, mechanism) in self._effective

    def value(self, key: str, mechanism: str | None = None) -> ConfigValue:
        name = self.key_of(key, mechanism)
        definition = _DEFINITIONS[key]
        text = self._effective.get(name)
        return definition.default if text is None else replace(definition, name=name).parse(text)

    def text(self, key: str, mechanism: str | None = None) -> str | None:
        found = self.value(key, mechanism)
        assert found is None or isinstance(found, str), f"{key} is no text"
        return found

    def int(self, key: str, mechanism: str | None = None) -> int:
        found = self.value(key, mechanism)
        assert isinstance(found, int), f"{key} is no whole number"
        return found

    def tls_values(self) -> dict[str, ConfigValue]:
        values = {key: self.value(key) for key in TLS_KEYS}
        if self.uses_sasl and self.key_of(CLIENT_AUTH) == CLIENT_AUTH:
            # As in Kafka: who logs in by SASL needs a certificate too only where the listener itself says so.
            values[CLIENT_AUTH] = _DEFINITIONS[CLIENT_AUTH].default
        return values

    def _names(self, key: str, mechanism: str | None) -> list[str]:
        prefix = f"{PREFIX}{self.listener.name.lower()}."
        of_mechanism = [] if mechanism is None else [f"{prefix}{mechanism.lower()}.{key}"]
        if key == JAAS_CONFIG:
            return of_mechanism  # Kafka, too, takes no other
        return [*of_mechanism, f"{prefix}{key}", key]


def check_listener_security(config: BrokerConfig) -> None:
    """ConfigError for what is wrong with the secured listeners' keys by themselves; files are read by a start."""
    for listener in config.listeners:
        if listener.security != "PLAINTEXT":
            _check(ListenerSecurity(config, listener))


def _check(security: ListenerSecurity) -> None:
    for key in LISTENER_SECURITY_KEYS:
        security.value(key)
    if security.uses_tls and (security.text(ENDPOINT_IDENTIFICATION) or "").lower() not in ("", "https"):
        allowed = "https, or nothing to leave the names of other brokers unchecked"
        raise ConfigError(
            security.key_of(ENDPOINT_IDENTIFICATION), security.text(ENDPOINT_IDENTIFICATION), f"allowed is {allowed}"
        )
    if security.uses_sasl:
        _check_mechanisms(security)


def _check_least(security: ListenerSecurity, key: str, least: int, mechanism: str | None = None) -> None:
    if (found := security.int(key, mechanism)) < least:
        raise ConfigError(security.key_of(key, mechanism), found, f"Value must be at least {least}")


def _check_mechanisms(security: ListenerSecurity) -> None:
    key, found = security.key_of("sasl.enabled.mechanisms"), security.mechanisms
    name = security.listener.name
    allowed = f"listener {name} needs some of {', '.join(MECHANISMS)}"
    if not found:
        raise ConfigError(key, "", allowed)
    _check_least(security, "sasl.server.max.receive.size", 1)
    for mechanism in found:
        if mechanism not in MECHANISMS:
            raise ConfigError(key, ",".join(found), f"{allowed}; {mechanism} is not supported yet")
        for each in MECHANISM_KEYS:
            security.value(each, mechanism)
        _check_least(security, "connections.max.reauth.ms", 0, mechanism)
    if "PLAIN" in found and security.text(JAAS_CONFIG, "PLAIN") is None:
        key = security.key_of(JAAS_CONFIG, "PLAIN")
        users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="her password";'
        raise ConfigConflict(key, None, f"{key} is not set: PLAIN on listener {name} has its users there, as {users}")
    if "GSSAPI" in found and security.text(JAAS_CONFIG, "GSSAPI") is None:
        raise _without_keytab(security)
    url = "sasl.oauthbearer.jwks.endpoint.url"
    if "OAUTHBEARER" in found and security.text(url, "OAUTHBEARER") is None:
        raise ConfigConflict(url, None, f"{url} is not set: OAUTHBEARER on listener {name} checks tokens by its keys")


def _without_keytab(security: ListenerSecurity) -> ConfigError:
    key, name = security.key_of(JAAS_CONFIG, "GSSAPI"), security.listener.name
    options = 'useKeyTab=true storeKey=true keyTab="/path" principal="kafka/host";'
    module = f"com.sun.security.auth.module.Krb5LoginModule required {options}"
    message = f"{key} is not set: GSSAPI on listener {name} has its key there, as {module}"
    if not security.is_set("sasl.enabled.mechanisms"):
        message += (
            f" (GSSAPI is Kafka's default; for another mechanism set {PREFIX}{name.lower()}.sasl.enabled.mechanisms)"
        )
    return ConfigConflict(key, None, message)


def security_key(name: str) -> tuple[str, str] | None:
    """The listener, and the key of TLS or SASL that is set for it, or for a mechanism of it; None for other names."""
    if not name.startswith(PREFIX):
        return None
    listener, dot, rest = name.removeprefix(PREFIX).partition(".")
    if not dot:
        return None
    if rest in LISTENER_SECURITY_KEYS or (rest in MECHANISM_KEYS and rest != JAAS_CONFIG):
        return listener.upper(), rest
    mechanism, _, key = rest.partition(".")
    if mechanism.upper() in MECHANISMS and key in MECHANISM_KEYS:
        return listener.upper(), key
    return None
