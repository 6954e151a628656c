from __future__ import annotations

import pytest

from moldau.core.topic_names import collision_key, may_collide, topic_name_problem


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "a" * 249, "...", "-", "__consumer_offsets"])
def test_names_that_kafka_takes(name: str) -> None:
    assert topic_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_names_that_kafka_refuses_in_its_words(name: str, problem: str) -> None:
    assert topic_name_problem(name) == f"Topic name is invalid: {problem}"


def test_dots_and_underscores_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert [may_collide(name) for name in ("a.b", "a_b", "a-b")] == [True, True, False]
