"""The most specific quota counts, in Kafka's order, and decides who shares it."""

from __future__ import annotations

import pytest

from moldau.broker.quotas.precedence import Limit, Limits, SharedBy
from moldau.controller.image import QuotaEntity
from moldau.controller.settings.quotas import quota_entity

RATE = "producer_byte_rate"
OF_ALICES_APP: SharedBy = ("alice", "app")
OF_ALICE: SharedBy = ("alice", None)
OF_THE_APP: SharedBy = (None, "app")

# From the most to the least specific, each with who shares it.
ORDER: tuple[tuple[dict[str, str | None], SharedBy], ...] = (
    ({"user": "alice", "client-id": "app"}, OF_ALICES_APP),
    ({"user": "alice", "client-id": None}, OF_ALICES_APP),
    ({"user": "alice"}, OF_ALICE),
    ({"user": None, "client-id": "app"}, OF_ALICES_APP),
    ({"user": None, "client-id": None}, OF_ALICES_APP),
    ({"user": None}, OF_ALICE),
    ({"client-id": "app"}, OF_THE_APP),
    ({"client-id": None}, OF_THE_APP),
)


def limits(*entities: dict[str, str | None]) -> Limits:
    """The value of each is its number."""
    quotas: dict[QuotaEntity, dict[str, float]] = {
        quota_entity(each.items()): {RATE: float(number)} for number, each in enumerate(entities)
    }
    return Limits(RATE, quotas)


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_specific_quota_counts(first: int) -> None:
    left = ORDER[first:]
    assert limits(*[entity for entity, _ in left]).of("alice", "app") == Limit(0.0, left[0][1])


def test_quotas_of_others_do_not_count() -> None:
    others = limits({"user": "bob"}, {"client-id": "tool"}, {"user": "bob", "client-id": "app"}, {"ip": "127.0.0.1"})
    assert others.of("alice", "app") is None
    assert not others.is_empty


def test_a_quota_of_another_key_does_not_count() -> None:
    only = Limits(RATE, {quota_entity([("user", "alice")]): {"consumer_byte_rate": 1.0}})
    assert only.is_empty
    assert only.of("alice", "app") is None


def test_a_client_without_an_id_has_no_quota_of_client_ids() -> None:
    assert limits({"client-id": None}, {"user": None, "client-id": None}).of("alice", "") is None
    assert limits({"client-id": None}, {"user": None}).of("alice", "") == Limit(1.0, OF_ALICE)


def test_a_long_client_id_is_remembered_by_a_short_name() -> None:
    everybody = limits({"client-id": None})
    one, another = everybody.of("alice", "x" * 32_000), everybody.of("alice", "x" * 31_999)
    assert one is not None
    assert another is not None
    assert one.shared_by != another.shared_by
    assert len(str(one.shared_by)) < 256
