"""What Java prints, against values that its classes gave."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.java import double, hash_order, text_hash


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0.0"),
        (100.0, "100.0"),
        (12.5, "12.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-12500000.0, "-1.25E7"),
        (2.0**53, "9.007199254740992E15"),
        (float("inf"), "Infinity"),
    ],
)
def test_numbers(value: float, written: str) -> None:
    assert double(value) == written


@pytest.mark.parametrize(("text", "code"), [("", 0), ("abc", 96354), ("😀", 1772899)])
def test_the_hash_of_a_text(text: str, code: int) -> None:
    assert text_hash(text) == code


def test_the_order_of_a_map() -> None:
    """As Apache Kafka's TopicCommand listed them."""
    names = ["a.b", "c2", *(f"order-{number}" for number in range(1, 10))]
    assert [each.removeprefix("order-") for each in hash_order(names, text_hash, sized=True)] == [
        "a.b", "7", "8", "9", "3", "4", "5", "6", "1", "c2", "2",
    ]  # fmt: skip
