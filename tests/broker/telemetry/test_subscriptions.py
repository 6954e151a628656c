from __future__ import annotations

import pytest

from moldau.broker.telemetry.subscriptions import Subscriptions, Wanted
from moldau.core.ids import format_uuid
from tests.broker.telemetry.clients import ID, client

OTHER = b"\x01" + bytes(15)  # of which the two halves differ


def wanted(configs: dict[str, dict[str, str]], **changes: object) -> Wanted:
    subscriptions = Subscriptions()
    subscriptions.follow(configs)
    return subscriptions.wanted_of(client(**changes))  # type: ignore[arg-type]


def test_nobody_is_asked_for_anything_without_a_subscription() -> None:
    assert wanted({}) == Wanted((), 300_000)


def test_all_that_match_count_together() -> None:
    configs = {
        "a": {"metrics": "org.b,org.a", "interval.ms": "5000", "match": "client_id=sh.p"},
        "b": {"metrics": "org.b,org.c"},
        "other": {"metrics": "*", "interval.ms": "100", "match": "client_id=shop.+"},
    }
    assert wanted(configs) == Wanted(("org.a", "org.b", "org.c"), 5_000)
    assert wanted(configs, client_id="shops") == Wanted(("*",), 100)


def test_longer_intervals_than_the_default_are_not_waited_for() -> None:
    assert wanted({"a": {"metrics": "x", "interval.ms": "3600000"}}).interval_ms == 300_000


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (f"client_instance_id={format_uuid(ID)}", True),
        ("client_instance_id=A", False),
        ("client_software_name=apache-kafka-java,client_software_version=4\\..*", True),
        ("client_software_name=apache-kafka-java,client_software_version=3\\..*", False),
        ("client_source_address=10\\.0\\..*", True),
        ("client_source_port=4711", True),
        ("client_source_port=47", False),
    ],
)
def test_every_selector(match: str, fits: bool) -> None:
    assert wanted({"a": {"metrics": "x", "match": match}}).metrics == (("x",) if fits else ())


def test_the_id_is_that_of_the_subscription_and_the_client() -> None:
    one = Wanted(("*",), 1_000)
    assert one.subscription_id(ID) == Wanted(("*",), 1_000).subscription_id(ID)
    assert len({one.subscription_id(ID), one.subscription_id(OTHER), Wanted(("*",), 999).subscription_id(ID)}) == 3
    assert all(-(2**31) <= Wanted(("x",), each).subscription_id(OTHER) < 2**31 for each in range(100))
