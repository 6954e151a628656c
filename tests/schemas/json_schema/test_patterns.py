"""What patterns cost to compile, and that a schema whose patterns cost too much is refused before."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from moldau.schemas import json_schema
from moldau.schemas.json_schema.patterns import cost
from moldau.schemas.model import InvalidSchema, InvalidValue


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", 0), ("abc", 3), ("a{3}", 3), ("a{2,5}b", 6), ("a{2,}", 2), ("(?:ab){10}", 40), ("(a{5}){4}", 20),
        ("[a-z]{10}", 10), ("[^a]{2}", 40), (".{3}", 60), (r"\w{500}", 500), (r"\{3}", 3), (r"\p{L}{2}", 2_000),
        ("a{,5}", 5), ("((((", 0), ("))))", 0), ("a{0}", 1), ("[", 1),
    ],
)  # fmt: skip
def test_cost(pattern: str, expected: int) -> None:
    assert cost(pattern) == expected


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 50 + "a{1,1000}" + "){1,1000}" * 50, "\\p{" * 100_000])
def test_cost_of_the_worst_is_soon_known(pattern: str) -> None:
    began_s = time.process_time()
    assert cost(pattern) > 1_000_000
    assert time.process_time() - began_s < 2


def test_patterns_that_take_too_long_are_not_compiled() -> None:
    """A hundred of them held all threads for two seconds, and a megabyte has twenty thousand."""
    wild = {f"p{at}": {"pattern": f"(?:\\w{{1,500}}){{1,{at + 20}}}"} for at in range(150)}
    with pytest.raises(InvalidSchema, match="take too long to compile"):
        json_schema.parse(json.dumps({"properties": wild}))
    with pytest.raises(InvalidSchema, match="take too long to compile"):
        json_schema.parse(json.dumps({"$defs": {"a": {"patternProperties": {"(a{1,1000}){1,9000}": True}}}}))
    tame = {f"p{at}": {"pattern": "^[a-z][a-z0-9-]{0,61}(\\.[a-z]{2,63}){1,8}$"} for at in range(500)}
    assert json_schema.parse(json.dumps({"properties": tame})).canonical


def test_names_beside_patterns_have_a_limit() -> None:
    """Each name is tried with each pattern."""
    patterns = {f"^x{at}$": {"type": "string"} for at in range(500)}
    names = {f"n{at}": {"type": "integer"} for at in range(500)}
    assert kinds(patterns, names) == ["TOO_COMPLEX"]
    assert kinds({"(?:a{1,500}){1,100}b": {"type": "string"}}, {"a" * 3_000: {"type": "integer"}}) == ["TOO_COMPLEX"]


def kinds(patterns: dict[str, Any], names: dict[str, Any]) -> list[str]:
    closed = {"type": "object", "additionalProperties": False, "patternProperties": patterns}
    old = json_schema.parse(json.dumps({**closed, "properties": names}))
    return [each.kind for each in json_schema.parse(json.dumps(closed)).incompatibilities(old)]


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"pattern": "(?:a{1,500}){1,100}b"}},
        {"items": {"patternProperties": {"(?:a{1,500}){1,100}b": {}}}},
        {"items": {"propertyNames": {"allOf": [{"pattern": "(?:a{1,500}){1,100}b"}]}}},
        {"items": {"allOf": [{"pattern": f"(?:a{{1,50}}){{1,{at}}}b"} for at in range(1, 99)]}},
    ],
    ids=["pattern", "patternProperties", "propertyNames", "many"],
)
def test_texts_that_take_too_long_are_not_compared(schema: dict[str, object]) -> None:
    """Three thousand characters held all threads for twenty seconds."""
    parsed, text = json_schema.parse(json.dumps(schema)), "a" * 3_000
    began_s = time.process_time()
    with pytest.raises(InvalidValue, match="too long to compare"):
        parsed.encode([text, {text: 1}])
    assert time.process_time() - began_s < 2


def test_long_texts_are_compared_with_small_patterns_and_short_ones_with_large() -> None:
    blob = json_schema.parse('{"pattern": "^[A-Za-z0-9+/]*={0,2}$"}')
    assert len(blob.encode("A" * 4_000_000)) == 4_000_002
    names = json_schema.parse('{"items": {"pattern": "^.{1,255}$"}}')
    assert names.encode(["x" * 200] * 50)
