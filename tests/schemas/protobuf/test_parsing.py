"""What is a schema in Protobuf, what is none, and what hostile texts get."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.schemas import formats
from moldau.schemas.model import InvalidSchema, ReferencedText, SchemaType
from moldau.schemas.protobuf import compiler, parse
from tests.schemas.protobuf.test_printing import EDITION, EVERYTHING, PROTO2

PERSON = 'syntax = "proto3"; package p; message Person { string name = 1; }'


def outcome(text: str, *references: ReferencedText) -> str:
    try:
        schema = parse(text, references)
    except InvalidSchema as refused:
        short = len(str(refused)) < 3000 and "\n" not in str(refused)
        return "an error of a line" if short else str(refused)
    return "a schema" if schema.canonical and schema.normalized else "nothing"


def test_a_schema_is_found_by_its_type() -> None:
    schema = formats.parse(SchemaType.PROTOBUF, PERSON)
    assert (schema.type, schema.record_name) == (SchemaType.PROTOBUF, "p.Person")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("message A {} message B {}", "A"),
        ("package p.q; enum E { Z = 0; } message A {}", "p.q.A"),
        ("package p; enum E { Z = 0; }", "p.E"),
        ('import public "google/protobuf/any.proto";', None),
    ],
)
def test_a_record_is_the_first_message(text: str, name: str | None) -> None:
    assert parse(f'syntax = "proto3"; {text}').record_name == name


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("google/protobuf/any.proto", "google.protobuf.Any"),
        ("google/protobuf/api.proto", "google.protobuf.Api"),
        ("google/protobuf/descriptor.proto", "google.protobuf.FileDescriptorProto"),
        ("google/protobuf/duration.proto", "google.protobuf.Duration"),
        ("google/protobuf/empty.proto", "google.protobuf.Empty"),
        ("google/protobuf/field_mask.proto", "google.protobuf.FieldMask"),
        ("google/protobuf/source_context.proto", "google.protobuf.SourceContext"),
        ("google/protobuf/struct.proto", "google.protobuf.Struct"),
        ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
        ("google/protobuf/type.proto", "google.protobuf.Type"),
        ("google/protobuf/wrappers.proto", "google.protobuf.Int64Value"),
        ("google/type/date.proto", "google.type.Date"),
        ("google/type/money.proto", "google.type.Money"),
        ("google/type/timeofday.proto", "google.type.TimeOfDay"),
        ("confluent/meta.proto", "confluent.Meta"),
        ("confluent/type/decimal.proto", "confluent.type.Decimal"),
        ("confluent/type/variant.proto", "confluent.type.Variant"),
    ],
)
def test_well_known_types_need_no_references(file: str, name: str) -> None:
    schema = parse(f'syntax = "proto3"; import "{file}"; message M {{ {name} it = 1; }}')
    assert schema.decode(bytes.fromhex("0a00")) not in ({}, {"it": None})


def test_a_reference_may_stand_where_a_well_known_type_does() -> None:
    own = ReferencedText("confluent/meta.proto", 'syntax = "proto3"; package own; message Meta { int32 a = 1; }')
    text = 'syntax = "proto3"; import "confluent/meta.proto"; message M { own.Meta m = 1; }'
    assert parse(text, [own]).encode({"m": {"a": 1}}) == bytes.fromhex("0a020801")


def test_references_may_need_each_other() -> None:
    references = [
        ReferencedText("a.proto", 'syntax = "proto3"; package a; message A { int32 x = 1; }'),
        ReferencedText("deep/b.proto", 'syntax = "proto3"; package b; import public "a.proto";'),
    ]
    schema = parse('syntax = "proto3"; import "deep/b.proto"; message M { a.A a = 1; }', references)
    assert schema.encode({"a": {"x": 1}}) == bytes.fromhex("0a020801")


def test_two_schemas_may_have_messages_of_one_name() -> None:
    one, other = parse(PERSON), parse(PERSON.replace("string", "int32"))
    assert one.encode({"name": "7"}) == b"\x0a\x017"
    assert other.encode({"name": 7}) == b"\x08\x07"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "declares nothing"),
        ("// nothing", "declares nothing"),
        ('syntax = "proto4"; message M {}', "proto4"),
        ('syntax = "proto3"; message M { Missing m = 1; }', '"Missing" is not defined'),
        ('syntax = "proto3";\nmessage M { int32 a = 1; int32 b = 1; }', "line 2:"),
        ('syntax = "proto3"; message M { required int32 a = 1; }', "[Rr]equired fields are not allowed"),
        ('syntax = "proto3"; import "gone.proto"; message M {}', "gone.proto: File not found"),
        ('syntax = "proto3"; enum E { A = 1; }', "must be zero"),
        ('{"type": "record"}', "line 1:1: Expected top-level statement"),
        ("\ud800", "half of a surrogate pair"),
        ("message M {} " + "/" * (compiler.TEXT_BYTES_MAX + 1), "more than 1048576 bytes"),
        ("AAAA", "line 1:1"),
    ],
)
def test_what_is_no_schema_says_where_and_why(text: str, words: str) -> None:
    with pytest.raises(InvalidSchema, match=words) as wrong:
        parse(text)
    assert "\n" not in str(wrong.value)
    assert "/tmp" not in str(wrong.value)


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "etc/passwd", "0", "/dev/stdin", "default"])
def test_no_file_of_the_machine_can_be_imported(path: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(f'syntax = "proto3"; import "{path}"; message M {{}}')


@pytest.mark.parametrize(
    "name", ["", "a:b", "a=b", "../x.proto", "/x.proto", "a\nb", "a\\b", "-x", "x" * 1001, "\x00", "a//b", "@x"]
)
def test_a_references_name_can_not_leave_its_place(name: str) -> None:
    # Accepted it is just a name: what it names is the text, whatever else there may be on the machine.
    reference = ReferencedText(name, 'syntax = "proto3"; message X {}')
    assert outcome(PERSON, reference) in ("a schema", "an error of a line")


def test_too_many_references_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="1001 references"):
        parse(PERSON, [ReferencedText(f"{number}.proto", "") for number in range(1001)])


HOSTILE = {
    "deep messages": 'syntax = "proto3";' + "message A {" * 50_000,
    "deep options": 'syntax = "proto2"; option (x) = ' + "{a:" * 100_000,
    "deep lists": 'syntax = "proto2"; option (x) = ' + "[" * 100_000,
    "deep parentheses": "(" * 500_000,
    "many fields": 'syntax = "proto3"; message A {' + "".join(f"int32 f{n} = {n};" for n in range(1, 18_000)) + "}",
    "long names": 'syntax = "proto3"; package ' + "a" * 400_000 + "; message M {" + "M m = 1;" * 20_000 + "}",
    "a long package": 'syntax = "proto3"; package ' + ".".join("a" * 9) + "; message M { M m = 1; }",
    "many names in a long package": 'syntax = "proto3"; package '
    + "a" * 300_000
    + "; message M {"
    + "".join(f"M m{n} = {n};" for n in range(1, 9_000))
    + "}",
    "many messages in one line": 'syntax = "proto3";\t' + "".join(f"message M{n} {{int32 a=1;}}" for n in range(5_000)),
    "no text": "\x00\x01\x02",
    "an unended string": 'syntax = "',
    "an unended comment": "/*" * 100_000,
    "one of all characters": "".join(map(chr, range(1, 0xD7FF))),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_end_in_time(text: str) -> None:
    began = time.monotonic()
    assert outcome(text) in ("a schema", "an error of a line")
    assert time.monotonic() - began < 60


WORDS = [*"{}=1;a[]()<>-,.", "message", "M", "int32", '"x"', "option", "enum", "oneof", "map<", "extend", "reserved"]
WORDS += ["syntax", '"proto3"', "default", "//", "/*", "*/", "group", "to", "max", "import", "package", "repeated"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_words_are_a_schema_or_none(words: list[str]) -> None:
    try:
        schema = parse(" ".join(words))
    except InvalidSchema:
        return
    assert parse(schema.canonical).canonical == schema.canonical


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_descriptor_is_a_schema_or_none(noise: bytes) -> None:
    try:
        schema = parse(base64.b64encode(noise).decode())
    except InvalidSchema:
        return
    assert parse(schema.canonical).canonical == schema.canonical


DESCRIPTORS = [base64.b64decode(parse(text).formatted("serialized")) for text in (EVERYTHING, PROTO2, EDITION)]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(DESCRIPTORS), st.integers(0, 10_000), st.integers(0, 4), st.binary(max_size=4))
def test_a_damaged_descriptor_is_a_schema_or_none(whole: bytes, at: int, cut: int, noise: bytes) -> None:
    at %= len(whole)
    try:
        schema = parse(base64.b64encode(whole[:at] + noise + whole[at + cut :]).decode())
    except InvalidSchema:
        return
    assert parse(schema.canonical).canonical == schema.canonical


@pytest.mark.parametrize("name", ["M { } message N", "1", "", "a b", 'M"', "M\n", "µ"])
def test_a_descriptor_with_odd_names_is_refused_or_what_its_text_says(name: str) -> None:
    file = FileDescriptorProto(name="x", syntax="proto3")
    file.message_type.add(name=name).field.add(
        name="f", number=1, type=FieldDescriptorProto.TYPE_INT32, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    try:
        schema = parse(base64.b64encode(file.SerializeToString()).decode())
    except InvalidSchema:
        return
    assert parse(schema.canonical).canonical == schema.canonical


def test_a_message_that_the_runtime_can_not_hold_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="exceeded maximum size"):
        parse(HOSTILE["many fields"])


def described(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def test_descriptors_that_point_nowhere_are_refused() -> None:
    files = [FileDescriptorProto(name="x", syntax="proto3") for _ in range(4)]
    files[0].public_dependency.append(7)
    files[1].message_type.add(name="M").field.add(name="f", number=1, type=5, label=1, oneof_index=3)
    files[2].message_type.add(name="M").field.add(name="f", number=1, type=11, label=1, type_name=".Gone")
    files[3].dependency.append("gone.proto")
    for file in files:
        with pytest.raises(InvalidSchema):
            parse(described(file))


def test_a_descriptor_whose_groups_double_on_each_level_is_printed_in_time() -> None:
    file = FileDescriptorProto(name="x")
    scope = file.message_type.add(name="M")
    name = ".M"
    for _ in range(30):
        name += ".G"
        for number in (1, 2):
            scope.field.add(
                name=f"g{number}", number=number, type=FieldDescriptorProto.TYPE_GROUP, type_name=name, label=1
            )
        scope = scope.nested_type.add(name="G")
    with pytest.raises(InvalidSchema):
        parse(described(file))


def test_no_compiler_leaves_anything_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    parse(PERSON)
    with pytest.raises(InvalidSchema):
        parse("message")
    assert os.listdir(tmp_path) == []


def test_without_a_compiler_it_is_said_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sysconfig.get_path", lambda name: "/nowhere")
    compiler.find_protoc.cache_clear()
    try:
        with pytest.raises(InvalidSchema, match="pip install 'moldau"):
            parse(PERSON)
    finally:
        compiler.find_protoc.cache_clear()
