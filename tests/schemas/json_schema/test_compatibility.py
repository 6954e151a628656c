"""Which pairs of JSON Schemas are compatible, by a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moldau.schemas import json_schema
from moldau.schemas.json_schema.differences import SENTENCES
from moldau.schemas.model import Incompatibility, ReferencedText
from tests.schemas.pairs import read_pairs, wrong_rows

PAIRS = read_pairs(Path(__file__).with_name("pairs.txt"))
DRAFTS = (
    "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)  # fmt: skip


def compare(reader: str, writer: str) -> Sequence[Incompatibility]:
    return json_schema.parse(reader).incompatibilities(json_schema.parse(writer))


def test_the_table_is_large_and_has_each_row_once() -> None:
    assert len(PAIRS) >= 150
    assert len({row.what for row in PAIRS}) == len(PAIRS)


def test_each_pair_of_the_table() -> None:
    assert not wrong_rows(PAIRS, compare)


def test_each_schema_of_the_table_takes_what_it_took() -> None:
    assert not [row.what for row in PAIRS if compare(row.old, row.old) or compare(row.new, row.new)]


def test_the_table_has_all_kinds_of_differences() -> None:
    seen = {reason.split()[0] for row in PAIRS for reason in (*row.backward, *row.forward)}
    assert SENTENCES.keys() - seen == {"TOO_COMPLEX"}


@pytest.mark.parametrize("draft", DRAFTS)
def test_rules_that_all_drafts_share(draft: str) -> None:
    """What the table says without a draft, which is draft 7, of keywords that mean the same in all of them."""
    of_one_draft = {
        "const",
        "contains",
        "if",
        "additionalItems",
        "dependencies",
        "$ref",
        "exclusiveM",
        '"$id"',
        "false}",
    }
    of_one_draft |= {'items": [', "not", "true", "false", "{}"}
    plain = [row for row in PAIRS if "$schema" not in row.old + row.new]
    plain = [row for row in plain if row.old[0] == row.new[0] == "{" and row.old != "{}" != row.new]
    shared = [row for row in plain if not any(word in row.old + row.new for word in of_one_draft)]
    assert len(shared) > 50
    named = json.dumps({"$schema": draft})[1:-1]
    assert not wrong_rows(shared, lambda reader, writer: compare(f"{{{named},{reader[1:]}", f"{{{named},{writer[1:]}"))


def test_a_verdict_is_a_sentence_with_the_schema_that_is_new() -> None:
    (found,) = compare('{"properties":{"a":{"maxLength":3}}}', '{"properties":{"a":{"maxLength":5}}}')
    assert found.described(reader="new", writer="old") == (
        "The value at path '#/properties/a/maxLength' in the new schema is less than its value in the old schema"
    )


def test_what_references_say_is_compared() -> None:
    def order(customer: dict[str, Any]) -> json_schema.JsonSchema:
        text = '{"type":"object","properties":{"customer":{"$ref":"customer.json"}}}'
        return json_schema.parse(text, [ReferencedText("customer.json", json.dumps(customer))])

    small, large = order({"type": "integer"}), order({"type": "number"})
    assert not large.incompatibilities(small)
    (found,) = small.incompatibilities(large)
    assert (found.kind, found.path) == ("TYPE_NARROWED", "#/properties/customer")


def test_a_cycle_that_is_compatible_only_at_first_sight_is_not() -> None:
    """Each of the two holds the other; the difference is met after the cycle was taken as compatible."""

    def cycle(last: str) -> str:
        ways = [{"$ref": "#/definitions/a"}, {"type": "null"}]
        held = {"type": "object", "properties": {"a": {"oneOf": ways}, "v": {"type": last}}}
        holder = {"type": "object", "properties": {"b": {"$ref": "#/definitions/b"}}}
        return json.dumps({"$ref": "#/definitions/a", "definitions": {"a": holder, "b": held}})

    assert not compare(cycle("number"), cycle("integer"))
    assert compare(cycle("string"), cycle("integer"))


def test_sums_that_take_too_long_to_compare_are_incompatible() -> None:
    parts = [{"type": "object", "properties": {f"p{at}": {"type": "string"}}} for at in range(1_500)]
    assert "TOO_COMPLEX" in {each.kind for each in compare(json.dumps({"oneOf": parts}), json.dumps({"oneOf": parts}))}
