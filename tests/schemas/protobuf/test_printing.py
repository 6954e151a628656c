"""The text of a schema: what two registries store under one id."""

from __future__ import annotations

import base64
from textwrap import dedent

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from moldau.schemas.model import ReferencedText
from moldau.schemas.protobuf import parse

EVERYTHING = r"""
/* A file with one of everything. */
syntax = "proto3";
package a.b; // its package
import public "google/protobuf/timestamp.proto";
import 'google/protobuf/descriptor.proto';
option java_package = "org" /* in two */ ".moldau";
option optimize_for=CODE_SIZE;

message M {
	reserved 20,  22 to 24 ; reserved "gone", 'went'; reserved 1000 to max;
	option (message_opt) = { text: "x\ty", numbers: [1,2], inner { text: 'q' } };
	map< string ,  M.I > counts = 1;
	repeated	I i = 2 [(tag) = "a\tb\"", deprecated=true, (m).text = "z", json_name="zz"];
	oneof one { option (oneof_opt) = -1.5; a.b.M.I j = 4; string s = 3; }
	optional int32 k = 6;
	enum E { option allow_alias = true; ZERO = 0; NULL = 0 [deprecated = true]; NEGATIVE = -1; reserved 5 to 7; }
	E e = 7;
	message I { }
}

extend google.protobuf.FieldOptions { string tag = 50001; M.Options m = 50002; }
extend google.protobuf.MessageOptions { Options message_opt = 50003; }
extend google.protobuf.OneofOptions { double oneof_opt = 50004; }
message Options { string text = 1; repeated int32 numbers = 2; Options inner = 3; }
service S { rpc Get (M) returns (stream .a.b.M.I) { option deprecated = true; } rpc Put (stream M) returns (M); }
""".replace("M.Options m", "Options m")

CANONICAL = r"""
syntax = "proto3";
package a.b;

import "google/protobuf/descriptor.proto";
import public "google/protobuf/timestamp.proto";

option java_package = "org.moldau";
option optimize_for = CODE_SIZE;

message M {
  reserved 20, 22 to 24;
  reserved "gone", "went";
  reserved 1000 to max;

  option (message_opt) = {
    text: "x\ty",
    numbers: [
      1,
      2
    ],
    inner: {
      text: "q"
    }
  };

  map<string, M.I> counts = 1;
  repeated I i = 2 [
    (tag) = "a\tb\"",
    deprecated = true,
    (m).text = "z",
    json_name = "zz"
  ];
  optional int32 k = 6;
  E e = 7;

  oneof one {
    option (oneof_opt) = -1.5;
~~
    a.b.M.I j = 4;
    string s = 3;
  }

  message I {}
  enum E {
    reserved 5 to 7;
    option allow_alias = true;
    ZERO = 0;
    NULL = 0 [deprecated = true];
    NEGATIVE = -1;
  }
}
message Options {
  string text = 1;
  repeated int32 numbers = 2;
  Options inner = 3;
}

extend google.protobuf.FieldOptions {
  string tag = 50001;
  Options m = 50002;
}
extend google.protobuf.MessageOptions {
  Options message_opt = 50003;
}
extend google.protobuf.OneofOptions {
  double oneof_opt = 50004;
}

service S {
  rpc Get (M) returns (stream .a.b.M.I) {
    option deprecated = true;
  };
  rpc Put (stream M) returns (M);
}
"""

NORMALIZED = r"""
syntax = "proto3";
package a.b;

import "google/protobuf/descriptor.proto";
import public "google/protobuf/timestamp.proto";

option java_package = "org.moldau";
option optimize_for = CODE_SIZE;

message M {
  reserved 20;
  reserved 22 to 24;
  reserved 1000 to max;
  reserved "gone";
  reserved "went";

  option (a.b.message_opt) = {
    inner: {
      text: "q"
    },
    numbers: [
      1,
      2
    ],
    text: "x\ty"
  };

  map<string, .a.b.M.I> counts = 1;
  repeated .a.b.M.I i = 2 [
    (a.b.m) = {
      text: "z"
    },
    (a.b.tag) = "a\tb\"",
    deprecated = true,
    json_name = "zz"
  ];
  optional int32 k = 6;
  .a.b.M.E e = 7;

  oneof one {
    option (a.b.oneof_opt) = -1.5;
~~
    string s = 3;
    .a.b.M.I j = 4;
  }

  message I {}
  enum E {
    reserved 5 to 7;
    option allow_alias = true;
    NULL = 0 [deprecated = true];
    ZERO = 0;
    NEGATIVE = -1;
  }
}
message Options {
  string text = 1;
  repeated int32 numbers = 2;
  .a.b.Options inner = 3;
}

extend .google.protobuf.FieldOptions {
  string tag = 50001;
  .a.b.Options m = 50002;
}
extend .google.protobuf.MessageOptions {
  .a.b.Options message_opt = 50003;
}
extend .google.protobuf.OneofOptions {
  double oneof_opt = 50004;
}

service S {
  rpc Get (.a.b.M) returns (stream .a.b.M.I) {
    option deprecated = true;
  };
  rpc Put (stream .a.b.M) returns (.a.b.M);
}
"""

PROTO2 = """
package p;
message M {
  required int32 a = 1 [default = 5];
  optional string b = 2 [default = "x\\ny"];
  optional bytes c = 3 [default = "\\001\\377"];
  optional double d = 4 [default = -inf];
  optional float e = 5 [default = 0.1];
  optional bool f = 6 [default = true];
  optional E g = 7 [default = B];
  repeated int32 h = 8 [packed = true];
  optional group Grouped = 9 { optional int32 i = 10; }
  oneof o { string j = 11; }
  extensions 100 to 199, 500;
  extensions 1000 to max [verification = UNVERIFIED];
  enum E { A = 0; B = 1; }
  extend M { optional int32 k = 100; }
}
extend M { repeated M l = 101; optional int32 m = 102; optional group Extended = 103 { optional int32 n = 1; } }
"""

EDITION = """
edition = "2023";
package p;
option features.field_presence = IMPLICIT;
message M {
  reserved gone;
  int32 a = 1;
  string b = 2 [features.field_presence = EXPLICIT];
  M c = 3 [features.message_encoding = DELIMITED];
  repeated int32 d = 4;
}
"""


def expected(text: str) -> str:
    """Confluent's registry indents empty lines, too."""
    return text.lstrip().replace("~", " ")


def test_the_canonical_text_is_as_it_was_written_without_space_and_comments() -> None:
    assert parse(EVERYTHING).canonical == expected(CANONICAL)


def test_the_normalized_text_has_full_names_and_the_order_of_numbers() -> None:
    assert parse(EVERYTHING).normalized == expected(NORMALIZED)


@pytest.mark.parametrize("text", [EVERYTHING, PROTO2, EDITION], ids=["everything", "proto2", "edition"])
def test_each_printed_text_is_the_same_schema_again(text: str) -> None:
    schema = parse(text)
    again = parse(schema.canonical)
    assert (again.canonical, again.normalized) == (schema.canonical, schema.normalized)
    normal = parse(schema.normalized)
    assert normal.normalized == schema.normalized
    described = parse(schema.formatted("serialized"))
    assert described.normalized == schema.normalized
    assert parse(described.canonical).canonical == described.canonical
    assert described.formatted("serialized") == parse(described.canonical).formatted("serialized")


def test_proto2_is_printed_with_its_labels_defaults_and_groups() -> None:
    text = parse(PROTO2).canonical
    assert not text.startswith("syntax")
    for line in (
        "  required int32 a = 1 [default = 5];",
        '  optional string b = 2 [default = "x\\ny"];',
        '  optional bytes c = 3 [default = "\\001\\377"];',
        "  optional double d = 4 [default = -inf];",
        "  optional group Grouped = 9 {",
        "    string j = 11;",
        "  extensions 100 to 199, 500;",
        "  extensions 1000 to max [verification = UNVERIFIED];",
    ):
        assert line in text.split("\n")


def test_the_serialized_form_is_a_descriptor() -> None:
    file = FileDescriptorProto.FromString(base64.b64decode(parse(EVERYTHING).formatted("serialized")))
    assert (file.package, file.message_type[0].name, file.HasField("source_code_info")) == ("a.b", "M", False)
    assert parse(EVERYTHING).formatted("anything") == expected(CANONICAL)


def test_texts_that_differ_by_space_and_comments_are_the_same_schema() -> None:
    one = parse('syntax="proto3";package p;message M{int32 a=1;}')
    other = parse('// c\nsyntax = "proto3" ;\n\npackage p ; message M\t{\n int32 /* x */ a = 1 ; }\n')
    assert one.canonical == other.canonical == 'syntax = "proto3";\npackage p;\n\nmessage M {\n  int32 a = 1;\n}\n'


def test_names_and_order_are_normalized_alone() -> None:
    one = parse('syntax = "proto3"; package p; message M { M a = 1; int32 b = 2; }')
    other = parse('syntax = "proto3"; package p; message M { int32 b = 2; .p.M a = 1; }')
    assert one.canonical != other.canonical
    assert one.normalized == other.normalized


def test_options_of_imported_extensions_are_printed() -> None:
    text = """
        syntax = "proto3";
        import "confluent/meta.proto";
        message M {
          string ssn = 1 [(confluent.field_meta) = {tags: "PII", params: [{key: "b", value: "2"}, {key: "a"}]}];
        }
    """
    schema = parse(dedent(text))
    printed = """  string ssn = 1 [(confluent.field_meta) = {
    params: [
      {
        key: "a",
        value: ""
      },
      {
        key: "b",
        value: "2"
      }
    ],
    tags: "PII"
  }];"""
    assert printed in schema.normalized
    assert printed in parse(schema.formatted("serialized")).canonical


def test_a_descriptor_may_import_references() -> None:
    base = parse('syntax = "proto3"; package lib; message L { int32 a = 1; }')
    references = [ReferencedText("lib/l.proto", base.formatted("serialized"))]
    user = parse('syntax = "proto3"; import "lib/l.proto"; message M { lib.L l = 1; }', references)
    described = parse(user.formatted("serialized"), references)
    assert ".lib.L l = 1;" in described.canonical
    assert described.encode({"l": {"a": 1}}) == bytes.fromhex("0a020801")


def test_messages_before_a_map_keep_their_place() -> None:
    """Clients count a map's entry among the messages: their indexes have to mean the same in the stored text."""
    text = 'syntax = "proto3"; message M { message A {} map<string, A> a = 1; message B {} map<string, B> b = 2; }'
    order = [nested.name for nested in parse(text).file.message_type[0].nested_type]
    stored = parse(parse(text).canonical)
    described = parse(parse(text).formatted("serialized"))
    assert order == ["A", "AEntry", "B", "BEntry"]
    assert [nested.name for nested in stored.file.message_type[0].nested_type] == order
    assert [nested.name for nested in described.file.message_type[0].nested_type] == order
