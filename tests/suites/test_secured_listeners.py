"""Apache Kafka's own clients and tools over TLS and SASL: each mechanism, and users by ConfigCommand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramMechanism

from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.node.securing.secured import MECHANISMS, PASSWORDS, Secured, bearer, running_secured
from tests.suites import tools
from tests.suites.tools import Tools

COUNT = 3  # a second each: the tool waits for more before it sends
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SECURITY = "org.apache.kafka.common.security"
MODULES = {
    "PLAIN": f"{SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{SECURITY}.oauthbearer.OAuthBearerLoginModule",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running_secured(tmp_path_factory.mktemp("keys")) as running:
        yield running


@pytest.fixture(scope="module")
def host(secured: Secured) -> Iterator[LineProcess]:
    """A JVM of its own, which may read tokens from a file: Java's clients want to be told which."""
    token = secured.keys.folder / "token.jwt"
    token.write_text(bearer("alice")[0])
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed"
    words = ["env", f"JAVA_TOOL_OPTIONS=-D{allowed}.urls={token.as_uri()} -D{allowed}.files={token}"]
    with LineProcess(lambda: [*words, *tool_host()]) as process:
        yield process


def settings(secured: Secured, protocol: str, mechanism: str = "", user: str = "alice") -> dict[str, str]:
    found = {"security.protocol": protocol}
    if "SSL" in protocol:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured.keys.trusted)}
    if mechanism == "OAUTHBEARER":
        found |= {
            "sasl.oauthbearer.token.endpoint.url": (secured.keys.folder / "token.jwt").as_uri(),
            "sasl.login.callback.handler.class": f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config": f"{MODULES[mechanism]} required;",
        }
    elif mechanism:
        who = f'username="{user}" password="{PASSWORDS[user]}"'
        found["sasl.jaas.config"] = f"{MODULES[mechanism]} required {who};"
    return {**found, "sasl.mechanism": mechanism} if mechanism else found


def written(path: Path, values: dict[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return os.fspath(path)


def round_trip(host: LineProcess, bootstrap: str, topic: str, config: str) -> None:
    words = ["--bootstrap-server", bootstrap, "--topic", topic, "--command-config", config]
    lines = [str(number) for number in range(COUNT)]
    produced = host.ask(
        {"class": PRODUCER, "args": [*words, "--sync"], "stdin": "".join(f"{each}\n" for each in lines)}
    )
    assert produced["exit"] == 0, produced
    reading = ["--from-beginning", "--max-messages", str(COUNT), "--timeout-ms", "60000"]
    consumed = host.ask({"class": CONSUMER, "args": [*words, *reading], "stdin": ""})
    assert consumed["out"].split() == lines, consumed


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", ""),
        *(("SASL_SSL", mechanism) for mechanism in MECHANISMS),
        *(pytest.param("SASL_PLAINTEXT", mechanism, marks=pytest.mark.long) for mechanism in MECHANISMS),
    ],
)
def test_javas_clients(protocol: str, mechanism: str, secured: Secured, host: LineProcess, tmp_path: Path) -> None:
    config = written(tmp_path / "client.properties", settings(secured, protocol, mechanism))
    round_trip(host, secured.address(protocol), f"java-{protocol}-{mechanism}", config)


def test_javas_client_shows_its_certificate(secured: Secured, host: LineProcess, tmp_path: Path) -> None:
    own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.keys.client)}
    config = written(tmp_path / "client.properties", settings(secured, "SSL") | own)
    round_trip(host, secured.address("SSL"), "java-mtls", config)


def test_users_by_config_command(secured: Secured, host: LineProcess, tmp_path: Path) -> None:
    config = written(tmp_path / "admin.properties", settings(secured, "SASL_SSL", "SCRAM-SHA-512"))
    java = Tools(host, secured.address("SASL_SSL"))

    def configs(*words: str) -> str:
        printed = java.run(tools.CONFIGS, "--command-config", config, *words, "--entity-type", "users")
        assert printed.exit_code == 0, printed
        return printed.out

    secret = "SCRAM-SHA-256=[iterations=8192,password=a new secret]"
    assert "Completed updating config for user erin." in configs(
        "--alter", "--add-config", secret, "--entity-name", "erin"
    )
    admin = AdminClient(secured.client("PLAINTEXT"))
    (info,) = admin.describe_user_scram_credentials(["erin"])["erin"].result(20).scram_credential_infos
    assert (info.mechanism, info.iterations) == (ScramMechanism.SCRAM_SHA_256, 8192)
    jaas = f'{MODULES["SCRAM-SHA-256"]} required username="erin" password="a new secret";'
    erin = settings(secured, "SASL_SSL", "SCRAM-SHA-256") | {"sasl.jaas.config": jaas}
    round_trip(host, secured.address("SASL_SSL"), "java-erin", written(tmp_path / "erin.properties", erin))
    configs("--alter", "--delete-config", "SCRAM-SHA-256", "--entity-name", "erin")
    assert "erin" not in admin.describe_user_scram_credentials().result(20)
