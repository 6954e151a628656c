"""The settings of clients that log in with SCRAM over TLS, ready to use: for Java, for librdkafka and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.security.jaas import SCRAM_MODULE, login_line

PROTOCOL = "SASL_SSL"
MECHANISM = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, and whom the client trusts."""

    user: str
    password: str = field(repr=False)
    authority: Path
    mechanism: str = MECHANISM

    def java(self, bootstrap_servers: str) -> dict[str, str]:
        """Of Apache Kafka's own clients and tools."""
        return {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": PROTOCOL,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": login_line(SCRAM_MODULE, user=self.user, password=self.password),
        }

    def librdkafka(self, bootstrap_servers: str) -> dict[str, Any]:
        """Of confluent-kafka and of everything else on librdkafka."""
        return {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": PROTOCOL,
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    def python(self, bootstrap_servers: str) -> dict[str, Any]:
        """Of kafka-python; aiokafka wants a context in the place of the file."""
        return {
            "bootstrap_servers": bootstrap_servers,
            "security_protocol": PROTOCOL,
            "ssl_cafile": str(self.authority),
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }


def properties_text(settings: dict[str, Any]) -> str:
    """As a file of Java's; a backslash stands for itself only if there are two."""
    return "".join(f"{key}={str(value).replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items())


def python_text(settings: dict[str, Any]) -> str:
    arguments = "".join(f"    {key}={value!r},\n" for key, value in settings.items())
    return f"from kafka import KafkaProducer\n\nproducer = KafkaProducer(\n{arguments})\n"
