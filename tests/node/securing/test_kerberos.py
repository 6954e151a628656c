"""A broker of a Kerberos realm and real clients: who they are by their tickets, what they may do and are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import moldau
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.embedded.broker import EmbeddedBroker
from moldau.node.securing.between_brokers import channel_security
from moldau.node.securing.doors import check_doors
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka, free_ports
from tests.kerberos import Realm, in_realm, running_realm
from tests.node.securing import kerberos_logins as logins
from tests.node.securing.kerberos_logins import Users, outcome

SERVICE = "kafka/localhost"
RULES = r"RULE:[1:$1@$0](svc-.*@MOLDAU\.TEST)s/svc-(.*)@.*/$1/U,RULE:[2:$1]s/(batch)/nightly-$1/,DEFAULT"
REAUTHENTICATION_MS = 2_500


def login_module(keytab: Path, principal: str = SERVICE, *more: str) -> str:
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}"'
    return " ".join(["com.sun.security.auth.module.Krb5LoginModule required", options, *more]) + ";"


def overrides(keytab: Path) -> dict[str, str]:
    """GSSAPI is the mechanism of a listener that names none."""
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://localhost:0,SHORT://localhost:0",
        "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT"),
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": login_module(keytab),
        "listener.name.short.gssapi.sasl.jaas.config": login_module(keytab),
        "listener.name.short.gssapi.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
        "listener.name.short.sasl.kerberos.principal.to.local.rules": "DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "connection.failed.authentication.delay.ms": "0",
    }


@pytest.fixture(scope="module", autouse=True)
def belonging(realm: Realm) -> Iterator[None]:
    with in_realm(realm):
        yield


@pytest.fixture(scope="module")
def keytab(realm: Realm) -> Path:
    return realm.add(SERVICE)


@pytest.fixture(scope="module")
def broker(keytab: Path) -> Iterator[EmbeddedBroker]:
    with moldau.run(overrides=overrides(keytab)) as running:
        yield running


@pytest.fixture(scope="module")
def tickets(realm: Realm) -> dict[str, Path]:
    """Caches of users, by their principals."""
    return {who: realm.ticket(who, realm.add(who)) for who in ("alice", "svc-billing", "batch/night", "mallory")}


@contextmanager
def as_user(cache: Path | None) -> Iterator[None]:
    before = os.environ["KRB5CCNAME"]
    os.environ["KRB5CCNAME"] = f"FILE:{cache}"
    try:
        yield
    finally:
        os.environ["KRB5CCNAME"] = before


def allow(broker: EmbeddedBroker, principal: str, topic: str, operation: AclOperation = AclOperation.ALL) -> None:
    admin = AdminClient({"bootstrap.servers": str(broker.addresses["PLAINTEXT"])})
    binding = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW
    )
    for done in admin.create_acls([binding]).values():
        done.result(20)


KAFKA_PYTHON = """
import json, sys
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
address, topic, count = sys.argv[1:]
settings = dict(bootstrap_servers=address, security_protocol='SASL_PLAINTEXT', sasl_mechanism='GSSAPI',
                sasl_kerberos_service_name='kafka', sasl_kerberos_domain_name='localhost')
try:
    producer = KafkaProducer(max_block_ms=8_000, **settings)
    for number in range(int(count)):
        producer.send(topic, str(number).encode()).get(10)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset='earliest', consumer_timeout_ms=20_000, **settings)
    print(json.dumps([int(next(consumer).value) for _ in range(int(count))]))
    consumer.close()
except Exception as wrong:
    print(json.dumps(f"{type(wrong).__name__}: {wrong}"))
"""


def kafka_python(address: str, topic: str) -> Any:
    """What it read back, or what it was told."""
    return python(KAFKA_PYTHON, address, topic)


def python(code: str, address: str, topic: str, count: int = 5) -> Any:
    """What the code prints as JSON, in a process of its own: these clients look for gssapi when they are imported."""
    command = [sys.executable, "-W", "ignore", "-c", code, address, topic, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_kafka_python(broker: EmbeddedBroker, tickets: dict[str, Path]) -> None:
    with as_user(tickets["alice"]):
        assert kafka_python(str(broker.addresses["SASL_PLAINTEXT"]), uuid.uuid4().hex) == list(range(5))


AIOKAFKA = """
import asyncio, json, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
address, topic, count = sys.argv[1:]
settings = dict(bootstrap_servers=address, security_protocol='SASL_PLAINTEXT', sasl_mechanism='GSSAPI',
                sasl_kerberos_service_name='kafka', sasl_kerberos_domain_name='localhost')

async def round_trip():
    async with AIOKafkaProducer(**settings) as producer:
        for number in range(int(count)):
            await producer.send_and_wait(topic, str(number).encode())
    consumer = AIOKafkaConsumer(topic, auto_offset_reset='earliest', **settings)
    async with consumer:
        return [int((await consumer.getone()).value) for _ in range(int(count))]

print(json.dumps(asyncio.run(asyncio.wait_for(round_trip(), 60))))
"""


def test_aiokafka(broker: EmbeddedBroker, tickets: dict[str, Path]) -> None:
    with as_user(tickets["alice"]):
        assert python(AIOKAFKA, str(broker.addresses["SASL_PLAINTEXT"]), uuid.uuid4().hex) == list(range(5))


@pytest.mark.parametrize(("principal", "user"), [("svc-billing", "BILLING"), ("batch/night", "nightly-batch")])
def test_an_acl_is_for_the_name_that_a_rule_makes(
    principal: str, user: str, broker: EmbeddedBroker, tickets: dict[str, Path]
) -> None:
    address, topic = str(broker.addresses["SASL_PLAINTEXT"]), uuid.uuid4().hex
    allow(broker, f"User:{user}", topic)
    with as_user(tickets[principal]):
        assert kafka_python(address, topic) == list(range(5))
    with as_user(tickets["mallory"]):
        assert "TopicAuthorizationFailed" in kafka_python(address, topic)


@pytest.fixture(scope="module")
def users(realm: Realm) -> Iterator[Users]:
    """And a realm that nobody here knows, whose service has the same name."""
    with running_realm("OTHER.TEST") as other:
        other.add(SERVICE)
        yield logins.make_users(realm, other)


def sasl_address(broker: EmbeddedBroker) -> tuple[str, int]:
    address = broker.addresses["SASL_PLAINTEXT"]
    return address.host, address.port


@pytest.mark.parametrize("name", logins.CASES)
def test_a_login_is_answered_as_by_apache_kafka(name: str, broker: EmbeddedBroker, users: Users) -> None:
    case, expected = logins.CASES[name]
    assert outcome(sasl_address(broker), case, users) == expected


def test_a_principal_without_a_rule_is_told_that_it_is_not_let_in(keytab: Path, users: Users) -> None:
    rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]"}
    with moldau.run(overrides={**overrides(keytab), **rules}) as broker:
        assert outcome(sasl_address(broker), logins.UNMAPPED, users) == logins.UNMAPPED_HERE
        assert "no rule of sasl.kerberos.principal.to.local.rules applies to 'un/mapped@MOLDAU.TEST'" in broker.output()


def test_old_tickets_and_wrong_clocks_are_refused_as_by_apache_kafka(realm: Realm, keytab: Path, users: Users) -> None:
    with in_realm(realm, KRB5_CONFIG=str(logins.strict_config(realm))):
        strict = moldau.run(overrides=overrides(keytab))
    with strict as broker:
        for case, expected in logins.LATE.values():
            fresh = replace(users, shortly=shortly(realm))
            assert outcome(sasl_address(broker), case, fresh) == expected


def shortly(realm: Realm) -> Path:
    return realm.ticket("shortly", realm.folder / "shortly.keytab", "-l", f"{logins.SHORTLY_S}s")


@pytest.mark.long
@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka's jars")
def test_apache_kafka_answers_so(realm: Realm, keytab: Path, users: Users) -> None:
    plain, sasl, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://localhost:{sasl}"
    properties = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": login_module(keytab),
        "connection.failed.authentication.delay.ms": "0",
    }
    peer = ApacheKafka(properties=properties)
    peer.port = plain
    options = f"-Djava.security.krb5.conf={logins.strict_config(realm)}"
    with in_realm(realm, JAVA_TOOL_OPTIONS=options):
        peer.start()
    try:
        address = ("127.0.0.1", sasl)
        cases = {**logins.CASES, "a principal without a rule": (logins.UNMAPPED, logins.UNMAPPED_APACHE), **logins.LATE}
        for name, (case, expected) in cases.items():
            fresh = replace(users, shortly=shortly(realm))
            assert outcome(address, case, fresh) == expected, name
    finally:
        peer.__exit__(None, None, None)


def refused(values: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as wrong:
        check_doors(BrokerConfig.of(values))
    line = str(wrong.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"keyTab": "/nowhere"}, "Key table file '/nowhere' not found (listener SASL_PLAINTEXT)"),
        (
            {"principal": "kafka/other"},
            "No key table entry found for kafka/other@MOLDAU.TEST (listener SASL_PLAINTEXT)",
        ),
        ({"principal": ""}, "GSSAPI needs principal, which is not set"),
        ({"keyTab": ""}, "GSSAPI needs keyTab, which is not set"),
        ({"useKeyTab": "false"}, "a broker needs the key of its principal: set useKeyTab=true"),
        ({"serviceName": "another"}, "serviceName is not that of sasl.kerberos.service.name, which is kafka"),
    ],
)
def test_a_listener_that_nobody_could_log_in_to_is_refused_at_once(
    changed: dict[str, str], told: str, keytab: Path
) -> None:
    options = {"useKeyTab": "true", "storeKey": "true", "keyTab": str(keytab), "principal": SERVICE, **changed}
    text = " ".join(f'{name}="{value}"' for name, value in options.items())
    key = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
    line = refused({**overrides(keytab), key: f"com.sun.security.auth.module.Krb5LoginModule required {text};"})
    assert line.startswith(f"{key}: ")
    assert told in line


def test_keys_of_kerberos_that_could_not_work_are_refused_at_once(keytab: Path) -> None:
    values = overrides(keytab)
    rules = "sasl.kerberos.principal.to.local.rules"
    assert refused({**values, rules: "RULE:[1:$3]"}).startswith(f"{rules}: 'RULE:[1:$3]' has $3 in its format")
    own = f"listener.name.sasl_plaintext.{rules}"
    assert refused({**values, own: "default"}).startswith(f"{own}: 'default' is neither DEFAULT nor RULE:[n:format]")
    del values["sasl.kerberos.service.name"]
    assert "no service name: set sasl.kerberos.service.name" in refused(values)


@pytest.mark.parametrize(
    ("principal", "path", "told"),
    [
        (SERVICE, "/nowhere", "Key table file '/nowhere' not found (brokers log in on listener INSIDE)"),
        ("kafka/other", None, "No key table entry found for kafka/other@MOLDAU.TEST"),
        ("*", None, "to log in to others a broker has to be somebody"),
    ],
)
def test_a_broker_that_could_not_log_in_to_others_is_refused_at_once(
    principal: str, path: str | None, told: str, keytab: Path
) -> None:
    key = "listener.name.inside.gssapi.sasl.jaas.config"
    config = BrokerConfig.of(
        {
            "listeners": "INSIDE://127.0.0.1:9093",
            "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "listener.name.inside.sasl.kerberos.service.name": "kafka",
            key: login_module(Path(path or keytab), principal),
        }
    )
    with pytest.raises(ConfigError) as wrong:
        channel_security(lambda: config)
    assert str(wrong.value).startswith(f"{key}: ")
    assert told in str(wrong.value)


WITHOUT_LIBRARY = """
import sys
sys.modules["gssapi"] = None
from moldau.__main__ import main
sys.exit(main())
"""


def test_a_broker_without_the_library_says_what_to_install(keytab: Path, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in overrides(keytab).items()))
    command = [sys.executable, "-c", WITHOUT_LIBRARY, "start", str(properties), "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    (line,) = done.stderr.splitlines()
    assert "GSSAPI needs python-gssapi, which is not installed: pip install 'moldau[gssapi]'" in line
    assert done.returncode != 0
    assert not (tmp_path / "data").exists()
