"""What protects connections to ZooKeeper or etcd, from a broker's configuration. Reads the files that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from moldau.core.clock import SystemClock
from moldau.core.config.definitions import ConfigConflict, ConfigError, ConfigValue
from moldau.core.config.metadata_store import MetadataService

if TYPE_CHECKING:
    from moldau.security.jaas import LoginModule
    from moldau.security.sasl.client_login import ClientCredentials
    from moldau.security.tls.client_contexts import ClientTls
    from moldau.security.tls.settings import TlsSettings
    from moldau.store.zookeeper.security import User, ZookeeperSecurity

KERBEROS_SERVICE: Final = "zookeeper"  # the first part of the principals of ZooKeeper's servers
_KINDS: Final = {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"}
_KEY = re.compile(r"(?<![\w./-])ssl\.")


def zookeeper_security(service: MetadataService) -> ZookeeperSecurity | None:
    """None for an ensemble that is open. ConfigError for settings that nothing can be made of."""
    given = service.security
    if not (given.get("ssl.client.enable") or given.get("sasl.jaas.config")):
        return None
    from moldau.store.zookeeper.security import ZookeeperSecurity

    tls = service_tls(service)
    return ZookeeperSecurity(
        tls=None if tls is None else tls.current, user=_user(given), sets_acl=given.get("set.acl") is True
    )


def service_tls(service: MetadataService) -> ClientTls | None:
    """None for plain connections. ConfigError for settings that nothing can be made of."""
    if not service.security.get("ssl.client.enable"):
        return None
    from moldau.security.tls.client_contexts import ClientTls
    from moldau.security.tls.settings import TlsConfigError

    settings = _tls_settings(service)
    prefix = service.kind.lower()
    try:
        return ClientTls(lambda: settings, now_s=lambda: SystemClock().now_ms() / 1_000)
    except TlsConfigError as wrong:
        key = f"{prefix}.{wrong.key}"
        raise ConfigConflict(key, None, _KEY.sub(f"{prefix}.ssl.", str(wrong))) from None


def _tls_settings(service: MetadataService) -> TlsSettings:
    from moldau.security.tls.settings import TlsSettings

    values = {key: value for key, value in service.security.items() if key.startswith("ssl.")}
    for store in ("ssl.keystore", "ssl.truststore"):
        location = values[f"{store}.location"]
        if values[f"{store}.type"] is None and location is not None:
            values[f"{store}.type"] = _kind(str(location), f"{service.kind.lower()}.{store}.type")
    return TlsSettings.from_keys(values)


def _kind(location: str, key: str) -> str:
    """As ZooKeeper tells them apart."""
    kind = _KINDS.get(os.path.splitext(location)[1].lower())
    if kind is None:
        raise ConfigError(key, None, f"set it to PEM or PKCS12: the name of {location} does not say what it is")
    return kind


def _user(given: Mapping[str, ConfigValue]) -> User | ClientCredentials | None:
    text = given.get("sasl.jaas.config")
    if not isinstance(text, str) or not text:
        return None
    from moldau.security.jaas import KERBEROS_MODULE, InvalidJaasConfig, login_module, parse_jaas_config
    from moldau.security.sasl.digest_md5 import DIGEST_MD5
    from moldau.security.sasl.mechanism import GSSAPI
    from moldau.store.zookeeper.security import User

    key = "zookeeper.sasl.jaas.config"
    try:
        if KERBEROS_MODULE in {each.name for each in parse_jaas_config(text)}:
            return _tickets(login_module(text, GSSAPI))
        module = login_module(text, DIGEST_MD5)
    except InvalidJaasConfig as wrong:
        raise ConfigConflict(key, None, f"{key}: {wrong}") from None
    if not module.username or not module.password:
        raise ConfigConflict(key, None, f"{key}: username and password are needed, and one of them is not set")
    return User(module.username, module.password)


def _tickets(module: LoginModule) -> ClientCredentials:
    from moldau.security.sasl.client_credentials import kerberos_credentials
    from moldau.security.sasl.kerberos.library import Initiator
    from moldau.security.sasl.kerberos.login_module import kerberos_login

    service_name = module.options.get("serviceName") or KERBEROS_SERVICE
    login = kerberos_login(module, service_name, is_initiator=True)
    return kerberos_credentials(Initiator.by_keytab(login.keytab), login.service_name)
