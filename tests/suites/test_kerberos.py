"""Apache Kafka's own clients and tools with Kerberos tickets: by a key table, by a cache, and by a JAAS file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from moldau.embedded.broker import EmbeddedBroker
from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.kerberos import Realm, in_realm
from tests.node.securing.secured import Keys, make_keys
from tests.node.securing.test_kerberos import SERVICE, login_module, overrides
from tests.suites import tools
from tests.suites.test_secured_listeners import round_trip, written
from tests.suites.tools import Tools

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


@pytest.fixture(scope="module", autouse=True)
def belonging(realm: Realm) -> Iterator[None]:
    with in_realm(realm):
        yield


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def broker(realm: Realm, keys: Keys) -> Iterator[EmbeddedBroker]:
    keytab = realm.add(SERVICE)
    values = overrides(keytab)
    values |= {
        "listeners": f"{values['listeners']},SASL_SSL://localhost:0",
        "listener.security.protocol.map": f"{values['listener.security.protocol.map']},SASL_SSL:SASL_SSL",
        "listener.name.sasl_ssl.gssapi.sasl.jaas.config": login_module(keytab),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.broker),
    }
    with moldau.run(overrides=values) as running:
        yield running


@pytest.fixture(scope="module")
def host(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProcess]:
    """A JVM of the realm, whose JAAS file is for clients that say nothing of their own."""
    file = tmp_path_factory.mktemp("jaas") / "client.jaas"
    file.write_text(f"KafkaClient {{ {login_module(realm.add('alice'), 'alice', 'serviceName=kafka')} }};\n")
    options = f"-Djava.security.krb5.conf={realm.config} -Djava.security.auth.login.config={file}"
    with LineProcess(lambda: ["env", f"JAVA_TOOL_OPTIONS={options}", *tool_host()]) as process:
        yield process


def settings(**more: str) -> dict[str, str]:
    """GSSAPI is the default mechanism of clients, too."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"security.protocol": "SASL_PLAINTEXT", **given}


def address(broker: EmbeddedBroker, listener: str = "SASL_PLAINTEXT") -> str:
    return f"localhost:{broker.addresses[listener].port}"


def test_javas_clients_with_a_jaas_file(broker: EmbeddedBroker, host: LineProcess, tmp_path: Path) -> None:
    round_trip(host, address(broker), "by-file", written(tmp_path / "client.properties", settings()))


def test_javas_clients_over_tls(broker: EmbeddedBroker, host: LineProcess, keys: Keys, tmp_path: Path) -> None:
    trust = {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(keys.trusted)}
    config = settings(security_protocol="SASL_SSL", **trust)
    round_trip(host, address(broker, "SASL_SSL"), "by-tls", written(tmp_path / "client.properties", config))


def test_javas_clients_with_a_cache_of_tickets(
    broker: EmbeddedBroker, host: LineProcess, realm: Realm, tmp_path: Path
) -> None:
    cache = realm.ticket("alice", realm.add("alice"))
    jaas = f'{MODULE} useTicketCache=true ticketCache="{cache}" renewTGT=false principal="alice@MOLDAU.TEST";'
    config = settings(sasl_jaas_config=jaas, sasl_kerberos_service_name="kafka")
    round_trip(host, address(broker), "by-cache", written(tmp_path / "client.properties", config))


def test_javas_client_stays_logged_in(broker: EmbeddedBroker, host: LineProcess, tmp_path: Path) -> None:
    """Its login ends every two and a half seconds: a producer that sends for longer has logged in again."""
    config = written(tmp_path / "client.properties", settings())
    words = ["--topic", "renewed", "--num-records", "300", "--record-size", "10", "--throughput", "50"]
    began = time.monotonic()
    done = host.ask(
        {
            "class": "org.apache.kafka.tools.ProducerPerformance",
            "args": [*words, "--bootstrap-server", address(broker, "SHORT"), "--command-config", config],
            "stdin": "",
        }
    )
    assert done["exit"] == 0, done
    assert time.monotonic() - began > 5
    assert "300 records sent" in done["out"]
    assert "the session expired" not in broker.output()


def test_an_acl_by_a_tool_is_for_the_name_that_a_rule_makes(
    broker: EmbeddedBroker, host: LineProcess, realm: Realm, tmp_path: Path
) -> None:
    """Who lists topics sees those that its user may describe."""
    admin = written(tmp_path / "admin.properties", settings())
    java = Tools(host, address(broker))

    def run(tool: str, *words: str) -> tools.Printed:
        return java.run(tool, "--command-config", *words)

    for topic in ("open", "shut"):
        assert run(tools.TOPICS, admin, "--create", "--topic", topic).exit_code == 0
    billing = login_module(realm.add("svc-billing"), "svc-billing", "serviceName=kafka")
    config = written(tmp_path / "billing.properties", settings(sasl_jaas_config=billing))
    assert run(tools.TOPICS, config, "--list").out.split() == []
    allow = ["--add", "--allow-principal", "User:BILLING", "--operation", "Describe", "--topic", "open"]
    assert run(tools.ACLS, admin, *allow).exit_code == 0
    assert run(tools.TOPICS, config, "--list").out.split() == ["open"]


def test_javas_client_hears_that_its_ticket_is_for_somebody_else(
    broker: EmbeddedBroker, host: LineProcess, realm: Realm, tmp_path: Path
) -> None:
    realm.add("other/localhost")
    jaas = login_module(realm.add("alice"), "alice", "serviceName=other")
    config = written(tmp_path / "client.properties", settings(sasl_jaas_config=jaas))
    printed = Tools(host, address(broker)).run(tools.TOPICS, "--command-config", config, "--list")
    assert printed.exit_code != 0
    told = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
    assert told in printed.out + printed.err
