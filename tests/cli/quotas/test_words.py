"""Entities and values as users write and read them."""

from __future__ import annotations

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.quotas.words import entity_words, known_key, parsed_value, shown_entity, shown_value


def test_an_entity_has_a_name_or_is_the_default() -> None:
    entity, others = entity_words(["client-id=", "producer_byte_rate=1", "user=alice"])
    assert entity == {"client-id": None, "user": "alice"}
    assert others == ["producer_byte_rate=1"]
    assert shown_entity(entity) == "user=alice client-id="
    assert entity_words(["user=CN=alice,O=shop"])[0] == {"user": "CN=alice,O=shop"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["user"], "user: expected user=NAME, or user= for the default"),
        (["user=a", "user=b"], "user is named twice"),
        (["ip=::1", "user=b"], "an ip has quotas of its own, and none together with a user or a client-id"),
    ],
)
def test_what_is_no_entity_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        entity_words(words)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("key", "text", "value", "shown"),
    [
        ("producer_byte_rate", "1MiB", 1048576.0, "1MiB"),
        ("producer_byte_rate", "1.5KiB", 1536.0, "1536"),
        ("consumer_byte_rate", "10MB", 1e7, "10000000"),
        ("consumer_byte_rate", "2048", 2048.0, "2KiB"),
        ("consumer_byte_rate", "2048B", 2048.0, "2KiB"),
        ("request_percentage", "12.5%", 12.5, "12.5"),
        ("request_percentage", "200", 200.0, "200"),
        ("controller_mutation_rate", "0.5", 0.5, "0.5"),
        ("connection_creation_rate", "1024", 1024.0, "1024"),
    ],
)
def test_values_are_numbers_with_units(key: str, text: str, value: float, shown: str) -> None:
    assert parsed_value(key, text) == value
    assert shown_value(key, value) == shown


@pytest.mark.parametrize("text", ["", "much", "1MIB", "-1", "0", "nan", "inf", "1%"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="producer_byte_rate="):
        parsed_value("producer_byte_rate", text)


def test_an_unknown_key_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'rate' is no quota; there are producer_byte_rate, .*entities are user"):
        known_key("rate")
