"""Tags of messages and fields in Protobuf: where a path leads, and the options that come of it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from moldau.schemas.model import InvalidSchema, ReferencedText
from moldau.schemas.protobuf import parse, tagged
from moldau.schemas.tagging import Tagging

TEXT = """\
syntax = "proto3";
package a.b;

import "confluent/meta.proto";

message Out {
  option (confluent.message_meta).tags = "OLD";
  option deprecated = true;

  int32 one = 1 [
    deprecated = true,
    (confluent.field_meta).tags = "A",
    (.confluent.field_meta).tags = "B",
    json_name = "first"
  ];
  In two = 2 [(confluent.field_meta) = {
    tags: "A",
    doc: "its tags",
    tags: "B"
  }];
  map<string, int32> three = 3;
  optional int32 four = 4;

  oneof which {
    string five = 5;
  }

  message In {
    int64 x = 1;
  }
}
"""
OUT = '  option (confluent.message_meta).tags = "OLD";\n'
ONE = TEXT[TEXT.index("one = 1 [") : TEXT.index("  In two")]
TWO = TEXT[TEXT.index("two = 2 [") : TEXT.index("  map")]
FIELD = "[(confluent.field_meta) = {tags: [%s]}]"
MESSAGE = "option (confluent.message_meta) = {tags: [%s]};"
PII = FIELD % '"PII"'


@pytest.mark.parametrize(
    ("path", "is_record", "before", "after"),
    [
        ("Out", True, OUT, MESSAGE % '"OLD", "PII"'),
        (".Out", True, OUT, MESSAGE % '"OLD", "PII"'),
        ("Out.In", True, "message In {", "message In {" + MESSAGE % '"PII"'),
        ("Out.In.x", False, "x = 1;", f"x = 1 {PII};"),
        ("Out.three", False, "three = 3;", f"three = 3 {PII};"),
        ("Out.four", False, "four = 4;", f"four = 4 {PII};"),
        ("Out.five", False, "five = 5;", f"five = 5 {PII};"),
        (".Out.which.five", False, "five = 5;", f"five = 5 {PII};"),
        (
            "Out.one", False, ONE,
            'one = 1 [deprecated = true, (confluent.field_meta) = {tags: ["A", "B", "PII"]}, json_name = "first"];',
        ),
        ("Out.two", False, TWO, 'two = 2 [(confluent.field_meta) = {tags: ["A", "B", "PII"], doc: "its tags"}];'),
    ],
)  # fmt: skip
def test_a_path_leads_to_a_message_or_a_field(path: str, is_record: bool, before: str, after: str) -> None:
    found = tagged(TEXT, (), [Tagging(path, is_record, ("PII",))])
    assert found == parse(TEXT.replace(before, after)).canonical == parse(found).canonical


@pytest.mark.parametrize(
    ("path", "is_record", "removed", "before", "after"),
    [
        ("Out", True, ("OLD", "NONE"), OUT, ""),
        ("Out.one", False, ("A", "B"), ONE, 'one = 1 [deprecated = true, json_name = "first"];'),
        ("Out.two", False, ("A", "B"), TWO, 'two = 2 [(confluent.field_meta) = {doc: "its tags"}];'),
        ("Out.three", False, ("A",), "", ""),
    ],
)
def test_tags_are_removed(path: str, is_record: bool, removed: tuple[str, ...], before: str, after: str) -> None:
    found = tagged(TEXT, (), [Tagging(path, is_record, (), removed)])
    assert found == parse(TEXT.replace(before, after)).canonical


@pytest.mark.parametrize(
    ("path", "is_record"),
    [
        ("", True),
        ("Out", False),
        ("one", False),
        ("a.b.Out", True),
        ("..Out", True),
        ("Out.Other", True),
        ("Out.ThreeEntry", True),
        ("Out.six", False),
        ("Out.other.five", False),
        ("Out.which.one", False),
        ("Out._four.four", False),
        ("Out.five", True),
    ],
)
def test_a_path_that_leads_nowhere_is_told(path: str, is_record: bool) -> None:
    with pytest.raises(InvalidSchema, match="No matching path"):
        tagged(TEXT, (), [Tagging(path, is_record, ("PII",))])


def test_what_declares_the_options_is_imported_where_they_are_needed() -> None:
    text = 'syntax = "proto3"; import "in.proto"; message M { In i = 1; }'
    references = [ReferencedText("in.proto", 'syntax = "proto3"; message In { int32 x = 1; }')]
    found = tagged(text, references, [Tagging("M.i", False, ("A",)), Tagging("M", True, (), ("A",))])
    assert parse(found, references).canonical == found
    assert found == dedent(
        """\
        syntax = "proto3";

        import "in.proto";
        import "confluent/meta.proto";

        message M {
          In i = 1 [(confluent.field_meta) = {
            tags: [
              "A"
            ]
          }];
        }
        """
    )
    assert "confluent/meta.proto" not in tagged(text, references, [Tagging("M", True, (), ("A",))])


def test_one_field_by_two_paths_has_the_tags_of_both() -> None:
    taggings = [Tagging("Out.five", False, ("A",)), Tagging("Out.which.five", False, ('"é\n',))]
    found = tagged(TEXT, (), taggings)
    assert '      tags: [\n        "A",\n        "\\"é\\n"\n      ]\n' in found
    assert parse(found).canonical == found
