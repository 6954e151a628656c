"""Who fails to log in and who is throttled is told by client id, in the log and in /metrics, of few of many ids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from moldau.broker.network.secured.authentications import FAILED_IDS_MAX, OTHER, Authentications
from moldau.wire.messages import AlterClientQuotasRequest
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from tests.hostile.attacker import Attacker
from tests.node.securing.secured import Secured, running_secured
from tests.scraping import scrape


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running_secured(tmp_path_factory.mktemp("metered"), metrics_listener="0") as running:
        yield running


def test_a_failed_login_is_told_by_client_id(secured: Secured) -> None:
    wrong = secured.logged_in("SASL_SSL", "SCRAM-SHA-512", "alice", "wrong")
    with pytest.raises(KafkaException):
        AdminClient({**wrong, "client.id": "billing"}).list_topics(timeout=2)
    found = scrape(secured.broker.metrics_url)
    assert found.value("moldau_failed_logins_total", listener="SASL_SSL", client_id="billing") >= 1
    (line, *_) = [each for each in secured.broker.output().splitlines() if "client id 'billing'" in each]
    assert "alice" not in line


def test_a_throttled_client_is_told_by_client_id(secured: Secured) -> None:
    own = {**secured.logged_in("SASL_SSL", "PLAIN", "alice"), "client.id": "greedy"}
    address = secured.broker.addresses["PLAINTEXT"]
    with Attacker((address.host, address.port)) as client:
        assert client.ask(quota("greedy", producer_byte_rate=30_000.0), 1).entries[0].error_code == 0
    producer = Producer(own)
    for _ in range(4):
        producer.produce("sent", bytes(100_000))
        assert producer.flush(60) == 0
    found = scrape(secured.broker.metrics_url)
    assert found.value("moldau_client_throttled_requests_total", client_id="greedy") >= 1
    assert found.value("moldau_client_throttle_seconds_total", client_id="greedy") > 0


def quota(client_id: str, **limits: float) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[OpData(key=key, value=value) for key, value in limits.items()],
            )
        ]
    )


def test_strangers_make_no_end_of_rows() -> None:
    logins = Authentications()
    for number in range(3 * FAILED_IDS_MAX):
        logins.fail_login(f"made-up-{number}")
    logins.fail_login("x" * 30_000)
    logins.fail_login(None)
    assert len(logins.failed_by_client) == FAILED_IDS_MAX + 1
    assert logins.failed_by_client[OTHER] == 2 * FAILED_IDS_MAX + 2
    assert logins.failed == 3 * FAILED_IDS_MAX + 2
