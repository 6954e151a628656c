"""Apache Kafka's own tools: its producer, which speaks the second protocol, and what administrators use."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from tests import apache_kafka

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka needs java, and Maven the first time"
)

TOOLS = "org.apache.kafka.tools"
SETTLE_S = 30.0


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, 1, 1)]).values():
        created.result(SETTLE_S)
    return name


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid.uuid4().hex[:10]}"


def run(tool: str, *arguments: str) -> str:
    done = apache_kafka.tool(f"{TOOLS}.{tool}", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def transactions(bootstrap: str, *arguments: str) -> list[dict[str, str]]:
    """The table that the tool prints, a row as what its columns say."""
    head, *rows = run("TransactionsCommand", "--bootstrap-server", bootstrap, *arguments).splitlines()
    names = [name.strip() for name in head.split("\t")]
    return [dict(zip(names, (cell.strip() for cell in row.split("\t")), strict=False)) for row in rows]


def test_its_producer_writes_transactions_of_the_second_protocol(
    bootstrap: str, topic: str, transactional_id: str
) -> None:
    printed = run(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "2000", "--record-size", "100", "--throughput", "2000"),
        *("--bootstrap-server", bootstrap),
        *("--transactional-id", transactional_id, "--transaction-duration-ms", "100"),
    )
    assert "2000 records sent" in printed
    (state,) = transactions(bootstrap, "describe", "--transactional-id", transactional_id)
    assert state["TransactionState"] == "CompleteCommit"
    # The epoch rises with every transaction; in the first protocol it would be 0.
    assert int(state["ProducerEpoch"]) > 1
    listed = transactions(bootstrap, "list")
    assert (transactional_id, "CompleteCommit") in [(row["TransactionalId"], row["TransactionState"]) for row in listed]


def test_an_administrator_aborts_what_a_producer_left_open(bootstrap: str, topic: str, transactional_id: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(SETTLE_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(SETTLE_S) == 0
    (before,) = transactions(bootstrap, "describe-producers", "--topic", topic, "--partition", "0")
    assert before["CurrentTransactionStartOffset"] == "0"
    run(
        "TransactionsCommand",
        *("--bootstrap-server", bootstrap, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0"),
    )
    (after,) = transactions(bootstrap, "describe-producers", "--topic", topic, "--partition", "0")
    assert after["CurrentTransactionStartOffset"] == "None"


def test_an_administrator_terminates_a_transactional_id(bootstrap: str, topic: str, transactional_id: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(SETTLE_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(SETTLE_S) == 0
    run(
        "TransactionsCommand",
        *("--bootstrap-server", bootstrap, "forceTerminateTransaction", "--transactionalId", transactional_id),
    )
    (state,) = transactions(bootstrap, "describe", "--transactional-id", transactional_id)
    assert state["TransactionState"] in ("CompleteAbort", "Empty")


def test_the_feature_is_shown(bootstrap: str) -> None:
    printed = run("FeatureCommand", "--bootstrap-server", bootstrap, "describe")
    (line,) = [line for line in printed.splitlines() if "transaction.version" in line]
    assert "SupportedMaxVersion: 2" in line
    assert "FinalizedVersionLevel: 2" in line


def test_a_lowered_feature_sends_its_producer_back_to_the_first_protocol(transactional_id: str) -> None:
    with moldau.run(overrides={"num.partitions": 1}) as broker:
        address = broker.bootstrap_servers
        run("FeatureCommand", "--bootstrap-server", address, "downgrade", "--feature", "transaction.version=1")
        run(
            "ProducerPerformance",
            *("--topic", "orders", "--num-records", "500", "--record-size", "100", "--throughput", "1000"),
            *("--bootstrap-server", address),
            *("--transactional-id", transactional_id, "--transaction-duration-ms", "100"),
        )
        (state,) = transactions(address, "describe", "--transactional-id", transactional_id)
        assert (state["TransactionState"], state["ProducerEpoch"]) == ("CompleteCommit", "0")
