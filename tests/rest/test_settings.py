"""What the proxy is set up with, and what it refuses to start with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.rest.command import parse
from moldau.cli.rest.settling import Settled, settled

FILE = """\
listeners=http://127.0.0.1:8082,https://127.0.0.1:8083
bootstrap.servers=PLAINTEXT://kafka-1:9092,PLAINTEXT://kafka-2:9092
schema.registry.url=http://registry:8081
schema.registry.basic.auth.user.info=me:secret
id=one
client.metadata.max.age.ms=1000
producer.linger.ms=7
consumer.fetch.max.bytes=1000000
consumer.instance.timeout.ms=1234
consumer.request.timeout.ms=77
consumer.iterator.backoff.ms=50
consumer.max.poll.records=30
fetch.min.bytes=1
"""
SASL = ("-X", "security.protocol=sasl_plaintext", "-X", "sasl.mechanism=PLAIN")
LOGIN = ("-X", "sasl.username=proxy", "-X", "sasl.password=secret")


def settings(tmp_path: Path, text: str, *arguments: str) -> Settled:
    file = tmp_path / "kafka-rest.properties"
    file.write_text(text)
    return settled(parse(["--config", str(file), *arguments]))


def test_confluents_keys(tmp_path: Path) -> None:
    found = settings(tmp_path, FILE)
    assert found.listeners == "http://127.0.0.1:8082,https://127.0.0.1:8083"
    assert found.settings.client["bootstrap.servers"] == "kafka-1:9092,kafka-2:9092"
    assert found.settings.client["metadata.max.age.ms"] == "1000"
    assert found.settings.producer == {"linger.ms": "7"}
    assert found.settings.consumer == {"fetch.max.bytes": "1000000"}
    assert (found.settings.instance_timeout_ms, found.settings.request_timeout_ms) == (1_234, 77)
    assert (found.settings.fetch_min_bytes, found.settings.id) == (1, "one")
    assert found.settings.registry_url == "http://registry:8081"
    assert found.settings.registry == {"schema.registry.basic.auth.user.info": "me:secret"}


def test_the_command_line_wins(tmp_path: Path) -> None:
    found = settings(tmp_path, FILE, "-b", "other:1", "--port", "0", "--host", "::1", "--registry", "http://r")
    assert found.settings.client["bootstrap.servers"] == "other:1"
    assert found.listeners == "http://[::1]:0"
    assert found.settings.registry_url == "http://r"


OAUTH = """\
client.security.protocol=SASL_SSL
client.sasl.mechanism=OAUTHBEARER
client.sasl.oauthbearer.token.endpoint.url=https://issuer.example.org/token
client.sasl.oauthbearer.method=oidc
client.sasl.oauthbearer.client.id=proxy
client.sasl.oauthbearer.client.secret=its secret
"""


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("conusmer.threads=1", (), "unknown key 'conusmer.threads'"),
        ("consumer.threads=many", (), "consumer.threads=many: expected a number"),
        ("", ("--authentication", "magic"), "expected one of NONE, BASIC, PASSTHROUGH"),
        ("", ("--authentication", "basic"), "--users FILE"),
        ("", ("--authentication", "passthrough"), "the cluster has no logins"),
        (OAUTH, ("--authentication", "passthrough"), "the cluster has to judge passwords: sasl.mechanism=OAUTHBEARER;"),
        ("client.security.protocol=SASL_SSL", ("--authentication", "passthrough"), "judge passwords: sasl.mechanism=;"),
        ("", (*SASL, *LOGIN), "whoever reaches it would have its rights"),
    ],
)
def test_what_it_refuses(tmp_path: Path, text: str, arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        settings(tmp_path, text, *arguments)


def test_everybody_may_come_in_if_that_is_meant(tmp_path: Path) -> None:
    found = settings(tmp_path, "", "--authentication", "none", *SASL, *LOGIN)
    assert found.settings.authentication == "NONE"
    assert settings(tmp_path, "", "--authentication", "passthrough", *SASL).settings.authentication == "PASSTHROUGH"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-X", "no.such.key=1"), 'No such configuration property: "no.such.key"'),
        (("--port", "70000"), "is no port"),
        (("--users", "/nowhere", "--authentication", "basic"), "cannot read /nowhere"),
        (("--registry", "ftp://x"), "schema registry"),
    ],
)
def test_a_start_that_fails_says_why_in_a_line(arguments: tuple[str, ...], told: str) -> None:
    command = [sys.executable, "-P", "-m", "moldau", "rest", "--port", "0", "--host", "127.0.0.1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert "Traceback" not in done.stderr
