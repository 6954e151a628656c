"""The settings to copy, for Kafka's brokers and for clients of three kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def broker_settings(identity: Path, authority: Path, password: str | None) -> str:
    """With a password those of the PKCS12 store."""
    settings = {"listeners": "SSL://:9093", **_keystore(identity, password), **_truststore(authority)}
    return _section("broker (server.properties)", settings)


def client_settings(authority: Path, *, identity: Path | None, password: str | None) -> str:
    """`identity` is a file with the client's key and certificate, if brokers ask for one."""
    java = {"security.protocol": "SSL", **_truststore(authority)}
    librdkafka: dict[str, object] = {"security.protocol": "ssl", "ssl.ca.location": authority}
    python = {"security_protocol": "SSL", "ssl_cafile": str(authority)}
    if identity is not None:
        java |= _keystore(identity, password)
        librdkafka |= {"ssl.certificate.location": identity, "ssl.key.location": identity}
        python |= {"ssl_certfile": str(identity), "ssl_keyfile": str(identity)}
    arguments = "".join(f"    {key}={value!r},\n" for key, value in python.items())
    return "\n".join(
        [
            _section("Java (client.properties)", java),
            _section("librdkafka, confluent-kafka (-X key=value)", librdkafka),
            f"# Python (kafka-python)\nKafkaProducer(\n    bootstrap_servers='localhost:9093',\n{arguments})\n",
        ]
    )


def _keystore(identity: Path, password: str | None) -> dict[str, object]:
    if password is None:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": identity}
    store = identity.with_suffix(".p12")
    return {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": store, "ssl.keystore.password": password}


def _truststore(authority: Path) -> dict[str, object]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}


def _section(title: str, settings: Mapping[str, object]) -> str:
    return f"# {title}\n" + "".join(f"{key}={value}\n" for key, value in settings.items())
