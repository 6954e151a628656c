"""Tags of records and fields in Avro: where a path leads, and what is left of the text."""

from __future__ import annotations

import json

import pytest

from moldau.schemas.avro import parse, tagged
from moldau.schemas.model import InvalidSchema, ReferencedText
from moldau.schemas.tagging import Tagging

INNER = '{"type":"record","name":"In","namespace":"b","fields":[{"name":"x","type":"int"%s}]%s}'
OUTER = (
    '{"type":"record","name":"Out","namespace":"a","fields":['
    '{"name":"one","type":["null",%s]%s},'
    '{"name":"many","type":{"type":"array","items":{"type":"map","values":{"type":"record","name":"In",'
    '"fields":[{"name":"y","type":["null","Out"]%s}]}}}}]%s}'
)
PLAIN = OUTER % (INNER % ("", ""), "", "", "")
PII = ',"confluent:tags":["PII"]'


@pytest.mark.parametrize(
    ("path", "is_record", "expected"),
    [
        ("a.Out", True, OUTER % (INNER % ("", ""), "", "", PII)),
        ("Out", True, OUTER % (INNER % ("", ""), "", "", PII)),
        (".Out", True, OUTER % (INNER % ("", ""), "", "", PII)),
        ("a.Out.one", False, OUTER % (INNER % ("", ""), PII, "", "")),
        ("b.In", True, OUTER % (INNER % ("", PII), "", "", "")),
        ("In", True, OUTER % (INNER % ("", PII), "", "", "")),  # the first of two
        ("b.In.x", False, OUTER % (INNER % (PII, ""), "", "", "")),
        ("a.In.y", False, OUTER % (INNER % ("", ""), "", PII, "")),
        ("In.y", False, OUTER % (INNER % ("", ""), "", PII, "")),  # the first that has the field
    ],
)
def test_a_path_leads_to_a_record_or_a_field(path: str, is_record: bool, expected: str) -> None:
    found = tagged(PLAIN, (), [Tagging(path, is_record, ("PII",))])
    assert found == expected == parse(expected).canonical
    assert tagged(found, (), [Tagging(path, is_record, (), ("PII",))]) == PLAIN


@pytest.mark.parametrize(
    ("path", "is_record"),
    [
        ("Out.two", False),
        ("c.Out", True),
        ("Out.one", True),
        ("Out", False),
        (".a.Out", True),
        ("", True),
        (".", False),
    ],
)
def test_a_path_that_leads_nowhere_is_told(path: str, is_record: bool) -> None:
    with pytest.raises(InvalidSchema, match=f"No matching path '{path}' found"):
        tagged(PLAIN, (), [Tagging(path, is_record, ("PII",))])


@pytest.mark.parametrize(
    ("before", "added", "removed", "after"),
    [
        (["B"], ("A", "B", "C"), (), ["B", "A", "C"]),
        (["A", "B"], ("C",), ("A", "C"), ["B"]),
        (["A"], (), ("B",), ["A"]),
        (["A"], (), ("A",), None),
        ([1], ("A",), (), ["1", "A"]),
    ],
)
def test_tags_are_added_and_then_removed(
    before: list[str], added: tuple[str, ...], removed: tuple[str, ...], after: list[str] | None
) -> None:
    field = {"name": "f", "type": "int", "confluent:tags": before}
    text = json.dumps({"type": "record", "name": "R", "fields": [field]})
    found = json.loads(tagged(text, (), [Tagging("R.f", False, added, removed)]))
    assert found["fields"][0].get("confluent:tags") == after


def test_what_a_reference_defines_is_not_in_the_text() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"f","type":"b.In"}]}'
    references = [ReferencedText("b.In", INNER % ("", ""))]
    assert tagged(text, references, [Tagging("R.f", False, ("A",))]) == text[:-3] + ',"confluent:tags":["A"]}]}'
    with pytest.raises(InvalidSchema, match="No matching path"):
        tagged(text, references, [Tagging("b.In", True, ("A",))])


def test_tags_that_are_none_are_told() -> None:
    text = '{"type":"record","name":"R","fields":[],"confluent:tags":"A"}'
    with pytest.raises(InvalidSchema, match="confluent:tags of 'R' is no array"):
        tagged(text, (), [Tagging("R", True, ("B",))])
