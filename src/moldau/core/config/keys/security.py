"""Keys of TLS, SASL and delegation tokens: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least, between, list_of, one_of, one_of_any_case

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD

_KAFKA_SECURITY = "org.apache.kafka.common.security"

SECURITY_KEYS = (
    ConfigDef("connections.max.reauth.ms", LONG, 0),
    ConfigDef("sasl.server.max.receive.size", INT, 524_288),
    ConfigDef("security.providers", STRING, None),
    ConfigDef("principal.builder.class", CLASS, f"{_KAFKA_SECURITY}.authenticator.DefaultKafkaPrincipalBuilder"),
    ConfigDef("ssl.client.auth", STRING, "none", one_of("required", "requested", "none")),
    ConfigDef("ssl.principal.mapping.rules", STRING, "DEFAULT"),
    ConfigDef("ssl.allow.dn.changes", BOOLEAN, False),
    ConfigDef("ssl.allow.san.changes", BOOLEAN, False),
    ConfigDef("ssl.protocol", STRING, "TLSv1.3"),
    ConfigDef("ssl.provider", STRING, None),
    ConfigDef("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), list_of(may_be_empty=True)),
    ConfigDef("ssl.keystore.type", STRING, "JKS"),
    ConfigDef("ssl.keystore.location", STRING, None),
    ConfigDef("ssl.keystore.password", PASSWORD, None),
    ConfigDef("ssl.key.password", PASSWORD, None),
    ConfigDef("ssl.keystore.key", PASSWORD, None),
    ConfigDef("ssl.keystore.certificate.chain", PASSWORD, None),
    ConfigDef("ssl.truststore.type", STRING, "JKS"),
    ConfigDef("ssl.truststore.location", STRING, None),
    ConfigDef("ssl.truststore.password", PASSWORD, None),
    ConfigDef("ssl.truststore.certificates", PASSWORD, None),
    ConfigDef("ssl.keymanager.algorithm", STRING, "SunX509"),
    ConfigDef("ssl.trustmanager.algorithm", STRING, "PKIX"),
    ConfigDef("ssl.endpoint.identification.algorithm", STRING, "https"),
    ConfigDef("ssl.secure.random.implementation", STRING, None),
    ConfigDef("ssl.cipher.suites", LIST, (), list_of(may_be_empty=True)),
    ConfigDef("ssl.engine.factory.class", CLASS, None),
    ConfigDef("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI"),
    ConfigDef("sasl.enabled.mechanisms", LIST, ("GSSAPI",), list_of(may_be_empty=True)),
    ConfigDef("sasl.server.callback.handler.class", CLASS, None),
    ConfigDef("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), list_of(may_be_empty=True)),
    ConfigDef("sasl.jaas.config", PASSWORD, None),
    ConfigDef("sasl.client.callback.handler.class", CLASS, None),
    ConfigDef("sasl.login.class", CLASS, None),
    ConfigDef("sasl.login.callback.handler.class", CLASS, None),
    ConfigDef("sasl.kerberos.service.name", STRING, None),
    ConfigDef("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit"),
    ConfigDef("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8),
    ConfigDef("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05),
    ConfigDef("sasl.kerberos.min.time.before.relogin", LONG, 60_000),
    ConfigDef("sasl.login.refresh.window.factor", DOUBLE, 0.8),
    ConfigDef("sasl.login.refresh.window.jitter", DOUBLE, 0.05),
    ConfigDef("sasl.login.refresh.min.period.seconds", SHORT, 60),
    ConfigDef("sasl.login.refresh.buffer.seconds", SHORT, 300),
    ConfigDef("sasl.login.connect.timeout.ms", INT, None),
    ConfigDef("sasl.login.read.timeout.ms", INT, None),
    ConfigDef("sasl.login.retry.backoff.max.ms", LONG, 10_000),
    ConfigDef("sasl.login.retry.backoff.ms", LONG, 100),
    ConfigDef(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        f"{_KAFKA_SECURITY}.oauthbearer.DefaultJwtRetriever",
    ),
    ConfigDef(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        f"{_KAFKA_SECURITY}.oauthbearer.DefaultJwtValidator",
    ),
    ConfigDef("sasl.oauthbearer.scope", STRING, None),
    ConfigDef("sasl.oauthbearer.client.credentials.client.id", STRING, None),
    ConfigDef("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None),
    ConfigDef("sasl.oauthbearer.assertion.algorithm", STRING, "RS256", one_of_any_case("ES256", "RS256")),
    ConfigDef("sasl.oauthbearer.assertion.claim.aud", STRING, None),
    ConfigDef("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, between(0, 86_400)),
    ConfigDef("sasl.oauthbearer.assertion.claim.iss", STRING, None),
    ConfigDef("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False),
    ConfigDef("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, between(0, 3600)),
    ConfigDef("sasl.oauthbearer.assertion.claim.sub", STRING, None),
    ConfigDef("sasl.oauthbearer.assertion.file", STRING, None),
    ConfigDef("sasl.oauthbearer.assertion.private.key.file", STRING, None),
    ConfigDef("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None),
    ConfigDef("sasl.oauthbearer.assertion.template.file", STRING, None),
    ConfigDef("sasl.oauthbearer.scope.claim.name", STRING, "scope"),
    ConfigDef("sasl.oauthbearer.sub.claim.name", STRING, "sub"),
    ConfigDef("sasl.oauthbearer.token.endpoint.url", STRING, None),
    ConfigDef("sasl.oauthbearer.jwks.endpoint.url", STRING, None),
    ConfigDef("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000),
    ConfigDef("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100),
    ConfigDef("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000),
    ConfigDef("sasl.oauthbearer.clock.skew.seconds", INT, 30),
    ConfigDef("sasl.oauthbearer.expected.audience", LIST, (), list_of(may_be_empty=True)),
    ConfigDef("sasl.oauthbearer.expected.issuer", STRING, None),
    ConfigDef("delegation.token.secret.key", PASSWORD, None),
    ConfigDef("delegation.token.max.lifetime.ms", LONG, 604_800_000, at_least(1)),
    ConfigDef("delegation.token.expiry.time.ms", LONG, 86_400_000, at_least(1)),
    ConfigDef("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, at_least(1)),
)
