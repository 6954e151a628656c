"""Which schema may follow which, at each level."""

from __future__ import annotations

from functools import cache

import pytest

from moldau.schemas.model import ReferencedText
from moldau.schemas.protobuf import ProtobufSchema, parse
from moldau.schemas.protobuf.changes import INCOMPATIBLE, Kind
from moldau.schemas.protobuf.differences import differences
from tests.schemas.protobuf.compatibility_table import PAIRS, Pair

LEVELS = {"BACKWARD": {"B"}, "FORWARD": {"F"}, "FULL": {"B", "F"}, "NONE": set()}


@cache
def schema(text: str, imported: str = "") -> ProtobufSchema:
    form, found, rest = text.partition(": ")
    match form if found else "":
        case "file":
            text = f'syntax = "proto3"; {rest}'
        case "file2":
            text = f'syntax = "proto2"; {rest}'
        case "proto2":
            text = f'syntax = "proto2"; message M {{ {rest} }}'
        case _:
            text = f'syntax = "proto3"; message M {{ {text} }}'
    return parse(text, [ReferencedText("lib.proto", f'syntax = "proto3"; {imported}')] if imported else [])


def test_the_table_is_large() -> None:
    assert len({(pair.before, pair.after, pair.imports_before, pair.imports_after) for pair in PAIRS}) >= 190
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_verdicts_at_each_level(pair: Pair) -> None:
    before, after = schema(pair.before, pair.imports_before), schema(pair.after, pair.imports_after)
    fine = {"B"} if not after.incompatibilities(before) else set()
    fine |= {"F"} if not before.incompatibilities(after) else set()
    assert {level for level, needed in LEVELS.items() if needed <= fine} == {
        level for level, needed in LEVELS.items() if needed <= set(pair.verdict)
    }


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("file: message M {}", "file: package p; message M {}", {"PACKAGE_CHANGED #/"}),
        ("int32 a = 1;", "string a = 1;", {"FIELD_SCALAR_KIND_CHANGED #/M/1"}),
        ("int32 a = 1;", "M a = 1;", {"FIELD_KIND_CHANGED #/M/1"}),
        ("M a = 1; message N {}", "N a = 1; message N {}", {"FIELD_NAMED_TYPE_CHANGED #/M/1"}),
        ("optional int32 a = 1;", "repeated int32 a = 1;", {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"}),
        (
            "proto2: optional int32 a = 1;",
            "proto2: required int32 b = 2; optional int32 a = 1;",
            {"REQUIRED_FIELD_ADDED #/M/2"},
        ),
        ("proto2: required int32 b = 2;", "proto2: optional int32 a = 1;", {"REQUIRED_FIELD_REMOVED #/M/2"}),
        ("message N { message O {} }", "message N {}", {"MESSAGE_REMOVED #/M/N/O"}),
        ("oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 a = 1; }", {"ONEOF_FIELD_REMOVED #/M/o/2"}),
        (
            "int32 a = 1; int32 b = 2;",
            "oneof o { int32 a = 1; int32 b = 2; }",
            {"MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o"},
        ),
        (
            "int32 a = 1; oneof o { int32 b = 2; }",
            "oneof o { int32 a = 1; int32 b = 2; }",
            {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/o"},
        ),
        ("map<string, int32> m = 1;", "map<string, string> m = 1;", {"FIELD_SCALAR_KIND_CHANGED #/M/1"}),
        ("oneof o { int32 a = 1; }", "oneof p { string a = 1; }", {"FIELD_SCALAR_KIND_CHANGED #/M/p/1"}),
    ],
)
def test_reasons_have_confluents_names_and_places(before: str, after: str, kinds: set[str]) -> None:
    reasons = schema(after).incompatibilities(schema(before))
    assert {f"{reason.kind} {reason.path}" for reason in reasons} == kinds
    for reason in reasons:
        told = reason.described(reader="new", writer="old")
        assert "{" not in told
        assert "new schema" in told
        assert "old schema" in told


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("int32 a = 1;", "int32 b = 1;", {Kind.FIELD_NAME_CHANGED}),
        ("int32 a = 1;", "int32 a = 1; int32 b = 2;", {Kind.FIELD_ADDED}),
        ("int32 a = 1; int32 b = 2;", "int32 a = 1;", {Kind.FIELD_REMOVED}),
        ("optional string a = 1;", "repeated string a = 1;", {Kind.FIELD_STRING_OR_BYTES_LABEL_CHANGED}),
        ("enum E { A = 0; }", "enum E { A = 0; B = 1; }", {Kind.ENUM_CONST_ADDED}),
        ("enum E { A = 0; B = 1; }", "enum E { A = 0; }", {Kind.ENUM_CONST_REMOVED}),
        ("enum E { A = 0; }", "enum E { B = 0; }", {Kind.ENUM_CONST_CHANGED}),
        ("enum E { A = 0; }", "enum F { A = 0; }", {Kind.ENUM_ADDED, Kind.ENUM_REMOVED}),
        ("message N {}", "message O {} message N {}", {Kind.MESSAGE_ADDED, Kind.MESSAGE_MOVED}),
        ("int32 a = 1;", "oneof o { int32 a = 1; int32 b = 2; }", {Kind.ONEOF_ADDED, Kind.ONEOF_FIELD_ADDED}),
        ("oneof o { int32 a = 1; }", "int32 a = 1;", {Kind.ONEOF_REMOVED, Kind.ONEOF_FIELD_MOVED_TO_TOP_LEVEL}),
    ],
)
def test_compatible_changes_are_seen_too(before: str, after: str, kinds: set[Kind]) -> None:
    found = {found.kind for found in differences(schema(before).files, schema(after).files)}
    assert found == kinds
    assert not found & INCOMPATIBLE.keys()


def test_a_changed_import_names_its_field_and_all_that_lead_to_it() -> None:
    deep = "message L {{ K k = 1; }} message K {{ {} a = 1; }}"
    use = 'file: import "lib.proto"; message M { L l = 7; }'
    reasons = schema(use, deep.format("string")).incompatibilities(schema(use, deep.format("int32")))
    assert {f"{reason.kind} {reason.path}" for reason in reasons} == {
        "FIELD_NAMED_TYPE_CHANGED #/M/7",
        "FIELD_NAMED_TYPE_CHANGED #/L/1",
        "FIELD_SCALAR_KIND_CHANGED #/K/1",
    }


def test_imports_that_branch_everywhere_are_compared_in_good_time() -> None:
    """Each of 300 messages has two fields of the next one: 2 to the power of 300 ways through them."""
    wide = "".join(f"message L{n} {{ L{n + 1} a = 1; L{n + 1} b = 2; }}" for n in range(300))
    use = 'file: import "lib.proto"; message M { L0 l = 1; }'
    before, after = (schema(use, f"{wide} message L300 {{ {kind} x = 1; }}") for kind in ("int32", "string"))
    assert len(after.incompatibilities(before)) == 602
