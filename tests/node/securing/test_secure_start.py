"""`moldau start --secure`: one command, and nobody gets in who did not read the admin's file."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ScramMechanism, UserScramCredentialDeletion

from moldau.core.config.definitions import ConfigError
from moldau.core.config.load import parse_properties
from moldau.embedded.process import START_S_MAX, BrokerProcess
from moldau.node.command import configuration, parse
from tests import apache_kafka
from tests.cli.conftest import run_tool
from tests.node.securing.secured import set_password

WAIT_S_MAX = 30.0


@contextmanager
def started(folder: Path, *options: str) -> Iterator[BrokerProcess]:
    words = ("start", "--port", "0", "--data-dir", str(folder / "data"), "--no-kafka-environment", *options)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    process = BrokerProcess([sys.executable, "-m", "moldau", *words, "--stop-with-stdin"], scratch=scratch)
    try:
        process.start(timeout_s=START_S_MAX)
        yield process
    finally:
        process.dispose()


def settings(folder: Path, name: str = "librdkafka.properties") -> dict[str, Any]:
    return {**parse_properties((folder / "data" / "security" / name).read_text()), "log_level": 0}


def round_trip(client: dict[str, Any], topic: str) -> bytes:
    producer = Producer(client)
    producer.produce(topic, b"hello")
    assert producer.flush(WAIT_S_MAX) == 0
    consumer = Consumer({**client, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    record = consumer.poll(WAIT_S_MAX)
    consumer.close()
    assert record is not None
    return bytes(record.value() or b"")


def test_the_files_that_it_writes_are_all_that_a_client_needs(tmp_path: Path) -> None:
    with started(tmp_path, "--secure") as process:
        assert list(process.listeners) == ["SASL_SSL"]
        admin = settings(tmp_path)
        assert round_trip(admin, "orders") == b"hello"
        for stranger in ({"security.protocol": "PLAINTEXT"}, {"sasl.password": "a guess"}):
            with pytest.raises(KafkaException):
                AdminClient({**admin, **stranger, "error_cb": lambda _: None}).list_topics(timeout=1)
        printed = process.output()
        assert str(tmp_path / "data" / "security" / "client.properties") in printed
        assert admin["sasl.password"] not in printed
    with started(tmp_path, "--secure"):
        again = settings(tmp_path)
        assert again["sasl.password"] == admin["sasl.password"]
        assert "orders" in AdminClient(again).list_topics(timeout=WAIT_S_MAX).topics


def test_data_of_an_open_broker_is_secured_by_its_next_start(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        (address,) = process.listeners.values()
        assert round_trip({"bootstrap.servers": str(address)}, "orders") == b"hello"
    with started(tmp_path, "--secure"):
        assert "orders" in AdminClient(settings(tmp_path)).list_topics(timeout=WAIT_S_MAX).topics
    with started(tmp_path) as process:
        assert "this start is without --secure: everybody may do everything" in process.output()


def test_passwords_that_anybody_set_before_let_nobody_in(tmp_path: Path) -> None:
    """Of the users of --secure they are replaced, by every mechanism; others are named."""
    with started(tmp_path) as process:
        (address,) = process.listeners.values()
        admin = AdminClient({"bootstrap.servers": str(address)})
        for user in ("admin", "broker", "mallory"):
            set_password(admin, user, "planted")
    with started(tmp_path, "--secure") as process:
        own = settings(tmp_path)
        assert AdminClient(own).list_topics(timeout=WAIT_S_MAX).brokers
        for user in ("admin", "broker"):
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                login = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": "planted"}
                assert is_refused(own | login), (user, mechanism)
        assert "1 users have passwords that anybody could set while nobody had to log in: 'mallory'" in process.output()
    with started(tmp_path, "--secure") as process:
        assert "anybody could set" not in process.output()


def is_refused(client: dict[str, Any]) -> bool:
    heard: list[str] = []
    admin = AdminClient({**client, "error_cb": lambda error: heard.append(error.name())})
    deadline_s = time.monotonic() + WAIT_S_MAX
    while "_AUTHENTICATION" not in heard and time.monotonic() < deadline_s:
        admin.poll(0.1)
    return "_AUTHENTICATION" in heard


def test_a_lost_password_is_replaced_and_one_that_was_changed_is_told(tmp_path: Path) -> None:
    with started(tmp_path, "--secure"):
        pass
    password = tmp_path / "data" / "security" / "admin.password"
    password.unlink()
    with started(tmp_path, "--secure"):
        own = settings(tmp_path)
        admin = AdminClient(own)
        assert admin.list_topics(timeout=WAIT_S_MAX).brokers
        set_password(admin, "admin", "changed")
    with started(tmp_path, "--secure") as process:
        assert f"user admin was deleted, or has another password than {password}" in process.output()
        changed = settings(tmp_path) | {"sasl.password": "changed"}
        admin = AdminClient(changed)
        assert admin.list_topics(timeout=WAIT_S_MAX).brokers
        deletion = UserScramCredentialDeletion("admin", ScramMechanism.SCRAM_SHA_512)
        admin.alter_user_scram_credentials([deletion])["admin"].result(WAIT_S_MAX)
    with started(tmp_path, "--secure"):
        assert is_refused(settings(tmp_path)), "who was deleted stays deleted"


@pytest.mark.parametrize("text", ['"quoted"', "a,b", "p]q", "sp ace", "back\\slash"])
def test_a_password_of_ones_own_may_have_any_characters(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "security"
    folder.mkdir(parents=True)
    (folder / "admin.password").write_text(f"{text}\n")
    with started(tmp_path, "--secure"):
        words = ("topics", "list", "--command-config", str(folder / "client.properties"))
        listed = run_tool("", *words)
        assert (listed.returncode, listed.stderr) == (0, "")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("listeners=PLAINTEXT://127.0.0.1:0", "--secure listens with SASL_SSL alone, and listeners has PLAINTEXT"),
        ("listeners=SASL_SSL://:0,SSL://:0", "--secure listens with SASL_SSL alone, and listeners has SSL"),
        ("allow.everyone.if.no.acl.found=true", "--secure decides about allow.everyone.if.no.acl.found"),
        ("inter.broker.listener.name=SASL_SSL", "--secure decides about inter.broker.listener.name"),
        ("ssl.keystore.location=/my.pem", "--secure decides about ssl.keystore.location"),
        ("listener.name.sasl_ssl.ssl.keystore.location=/my.pem", "--secure decides about ssl.keystore.location; leave"),
        ("listener.name.sasl_ssl.ssl.truststore.certificates=x", "--secure decides about ssl.truststore.certificates"),
        ("ssl.keystore.key=x", "--secure decides about ssl.keystore.key"),
    ],
)
def test_a_way_around_it_is_refused_and_nothing_is_made(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        configuration(options(tmp_path, override))
    assert message in str(raised.value)
    assert not (tmp_path / "data").exists()


def test_more_super_users_and_other_keys_are_the_users_choice(tmp_path: Path) -> None:
    config = configuration(options(tmp_path, "super.users=User:carol", "num.partitions=7"))
    assert config.layers.static["super.users"] == "User:admin;User:broker;User:carol"
    assert config.int("num.partitions") == 7


def options(folder: Path, *overrides: str) -> Namespace:
    given = [word for each in overrides for word in ("--override", each)]
    return parse(["--secure", "--no-kafka-environment", "--data-dir", str(folder / "data"), *given])


@pytest.mark.long
def test_javas_console_clients_take_the_file_as_it_is(tmp_path: Path) -> None:
    with started(tmp_path, "--secure"):
        file = str(tmp_path / "data" / "security" / "client.properties")
        server = settings(tmp_path)["bootstrap.servers"]
        common = ("--bootstrap-server", server, "--topic", "orders", "--command-config", file)
        sent = apache_kafka.tool("org.apache.kafka.tools.ConsoleProducer", *common, stdin="hello\n")
        assert sent.returncode == 0, sent.stderr
        reading = (*common, "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000")
        read = apache_kafka.tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *reading)
        assert read.stdout == "hello\n", read.stderr
