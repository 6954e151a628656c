"""Patterns are RE2's, as in Kafka: linear in the text, and refused in Kafka's words."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from moldau.core.limits import PATTERN_CHARS_MAX
from moldau.core.patterns import InvalidPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", ""]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        ("a|b", ["a", "b"], ["ab"]),
        ("(?i)ABC", ["abc", "aBc"], ["abcd"]),
        (r"\Qa.b\E", ["a.b"], ["axb"]),
        (r"\p{Greek}+", ["Ω"], ["O"]),
        ("", [""], ["a"]),
        ("(a+)+b", ["aab"], ["a"]),
    ],
)
def test_the_whole_name_is_matched(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = compile_pattern(pattern)
    assert [name for name in (*matching, *others) if compiled.matches(name)] == matching


@pytest.mark.parametrize(
    ("pattern", "description"),
    [
        ("(a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("(?P<n", "invalid named capture"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
        ("[z-a]", "invalid character class range"),
        ("a" * (PATTERN_CHARS_MAX + 1), f"longer than {PATTERN_CHARS_MAX} characters"),
        (r"(\pL|\pN){900}", "pattern too large - compile failed"),
    ],
)
def test_what_is_no_pattern_is_refused_in_kafkas_words(pattern: str, description: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == description


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", ".*.*.*.*.*.*.*b", "(a{1,9}){1,9}b", "(a?){200}a{200}", "((a*)*)*b"]
)
def test_a_hostile_pattern_takes_no_time(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    start = time.perf_counter()
    compiled.matches("a" * 249)
    assert time.perf_counter() - start < 1, "Python's own engine would take years"


def test_the_library_is_not_loaded_before_a_pattern_comes() -> None:
    code = "import sys, moldau.node.server, moldau.groups.consumer.heartbeating; print('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
