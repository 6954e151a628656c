"""Apache Kafka's settings of TLS and logins for librdkafka, so that one client.properties serves Java and the tools."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.failures import UsageError

PEM, PKCS12 = "PEM", "PKCS12"
_SAME = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_STORES = ("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password", "ssl.keystore.type")
_JAAS = "sasl.jaas.config"
# What Java's clients have to be told, or may be, so that they do what is done here in any case.
_CLASSES = {
    "sasl.login.callback.handler.class": (
        ".oauthbearer.OAuthBearerLoginCallbackHandler",
        ".oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        ".oauthbearer.DefaultJwtRetriever",
        ".oauthbearer.ClientCredentialsJwtRetriever",
        ".oauthbearer.FileJwtRetriever",
    ),
}
_OAUTH = {
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_OAUTH_OPTIONS = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_KERBEROS = {
    "keyTab": "sasl.kerberos.keytab",
    "principal": "sasl.kerberos.principal",
    "serviceName": "sasl.kerberos.service.name",
}


def for_librdkafka(given: Mapping[str, str]) -> dict[str, str]:
    """The same settings by librdkafka's names; what has one there already stays. UsageError holds no secret."""
    java = {*_SAME, *_STORES, *_OAUTH, *_CLASSES, _JAAS}
    if java.isdisjoint(given):
        return dict(given)
    found = {key: value for key, value in given.items() if key not in java}
    found |= {_SAME[key]: given[key] for key in _SAME if key in given}
    found |= _authorities(given) | _login(given) | _issuer(given)
    if "ssl.keystore.type" in given and _kind(given, "ssl.keystore.type") == PEM:
        location = found.pop("ssl.keystore.location", None)
        if location is not None:
            found |= {"ssl.certificate.location": location, "ssl.key.location": location}
    if not found.get("ssl.endpoint.identification.algorithm", "https"):
        found["ssl.endpoint.identification.algorithm"] = "none"
    return found


def _authorities(given: Mapping[str, str]) -> dict[str, str]:
    location = given.get("ssl.truststore.location")
    if location is None:
        return {}
    if _kind(given, "ssl.truststore.type") != PEM:
        raise UsageError(
            "ssl.truststore.location: this tool reads a trust store only as PEM; convert it with"
            " `keytool -exportcert -rfc` or `openssl pkcs12 -nokeys`, and set ssl.truststore.type=PEM"
        )
    return {"ssl.ca.location": location}


def _kind(given: Mapping[str, str], key: str) -> str:
    kind = given.get(key, "JKS").upper()
    if key == "ssl.keystore.type" and kind not in (PEM, PKCS12):
        raise UsageError(f"{key}={kind}: expected {PEM} or {PKCS12}; `keytool -importkeystore` converts a store")
    return kind


def _login(given: Mapping[str, str]) -> dict[str, str]:
    if _JAAS not in given:
        return {}
    from moldau.client.security import TOKEN_AUTH
    from moldau.security.jaas import InvalidJaasConfig, parse_jaas_config

    try:
        (module, *_) = parse_jaas_config(given[_JAAS])
    except InvalidJaasConfig as wrong:
        raise UsageError(f"{_JAAS}: {wrong}") from None
    if "ticketCache" in module.options:
        raise UsageError(f"{_JAAS}: this tool takes the tickets that KRB5CCNAME names; leave out ticketCache")
    found = {
        "sasl.username": module.username,
        "sasl.password": module.password,
        **{key: module.options.get(option) for option, key in (_KERBEROS | _OAUTH_OPTIONS).items()},
        TOKEN_AUTH: "true" if module.is_token_auth else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _issuer(given: Mapping[str, str]) -> dict[str, str]:
    """Java's clients ask an issuer wherever its URL is set; librdkafka has to be told so."""
    found = {ours: given[key] for key, ours in _OAUTH.items() if key in given}
    for key, known in _CLASSES.items():
        if key in given and not given[key].endswith(known):
            raise UsageError(f"{key}: Java classes cannot be loaded; remove it")
    is_https = given.get("sasl.oauthbearer.token.endpoint.url", "").startswith("https:")
    return found | ({"sasl.oauthbearer.method": "oidc"} if is_https else {})
