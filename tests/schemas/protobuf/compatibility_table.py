"""Pairs of schemas and whether the second may follow the first, by the rules of Confluent's registry.

A verdict names the directions that are fine: B, the new schema reads what the old one wrote (BACKWARD); F, the old one
reads what the new one writes (FORWARD); both together are FULL. A text is the body of `message M` in proto3 unless it
says otherwise: `proto2:` is such a body in proto2, `file:` a file of proto3 without its first line, `file2:` of proto2.
"""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    name: str
    before: str
    after: str
    verdict: str
    imports_before: str = ""  # of lib.proto
    imports_after: str = ""


# Scalars whose bytes are each other's.
SAME_BYTES = """int32 int64|int32 uint32|int32 uint64|int32 bool|int64 uint32|int64 uint64|int64 bool|uint32 uint64
uint32 bool|uint64 bool|sint32 sint64|string bytes|fixed32 sfixed32|fixed64 sfixed64"""
OTHER_BYTES = """int32 sint32|int64 sint64|uint32 sint32|uint64 sint64|bool sint32|int32 fixed32|int32 sfixed32
int64 fixed64|int64 sfixed64|int32 float|int64 double|int32 string|int64 bytes|bool string|float double|float fixed32
double fixed64|fixed32 fixed64|sfixed32 sfixed64|sint32 fixed32|sint64 string
string float|bytes double|uint32 float|fixed64 string"""


def scalars(pairs: str, verdict: str) -> list[Pair]:
    kinds = [pair.split() for pair in pairs.replace("\n", "|").split("|")]
    found = [Pair(f"{a} to {b}", f"{a} x = 1;", f"{b} x = 1;", verdict) for a, b in kinds]
    return found + [Pair(f"{b} to {a}", f"{b} x = 1;", f"{a} x = 1;", verdict) for a, b in kinds]


FIELDS = [
    Pair("nothing changes", "int32 a = 1;", "int32 a = 1;", "BF"),
    Pair("a comment", "int32 a = 1;", "/* why */ int32 a = 1 /* because */;", "BF"),
    Pair("a field is added", "int32 a = 1;", "int32 a = 1; int32 b = 2;", "BF"),
    Pair("a field replaces all others", "int32 a = 1;", "int32 b = 2;", "BF"),
    Pair("a field is renamed", "int32 a = 1;", "int32 b = 1;", "BF"),
    Pair("a field is numbered anew", "int32 a = 1;", "int32 a = 2;", "BF"),
    Pair("fields change places", "int32 a = 1; string b = 2;", "string b = 2; int32 a = 1;", "BF"),
    Pair("fields change numbers", "int32 a = 1; string b = 2;", "int32 a = 2; string b = 1;", ""),
    Pair("fields of one kind change numbers", "int32 a = 1; bool b = 2;", "int32 a = 2; bool b = 1;", "BF"),
    Pair("a field is renamed and of another kind", "int32 a = 1;", "string b = 1;", ""),
    Pair("a removed field is reserved", "int32 a = 1; int32 b = 2;", "reserved 1; int32 b = 2;", "BF"),
    Pair("a field gets a JSON name", "int32 a = 1;", 'int32 a = 1 [json_name = "x"];', "BF"),
    Pair("a field is deprecated", "int32 a = 1;", "int32 a = 1 [deprecated = true];", "BF"),
    Pair("a message loses all its fields", "int32 a = 1;", "", "BF"),
    Pair("a message field is added", "int32 a = 1;", "int32 a = 1; M m = 2;", "BF"),
    Pair("a bool becomes repeated without a label before", "bool a = 1;", "repeated bool a = 1;", "BF"),
    Pair("a string becomes repeated without a label before", "string a = 1;", "repeated string a = 1;", "BF"),
    Pair("a field becomes optional", "int32 a = 1;", "optional int32 a = 1;", "BF"),
    Pair("a string becomes optional", "string a = 1;", "optional string a = 1;", "BF"),
    Pair("an optional number becomes repeated", "optional int32 a = 1;", "repeated int32 a = 1;", ""),
    Pair("an optional bool becomes repeated", "optional bool a = 1;", "repeated bool a = 1;", ""),
    Pair("an optional double becomes repeated", "optional double a = 1;", "repeated double a = 1;", ""),
    Pair("an optional fixed32 becomes repeated", "optional fixed32 a = 1;", "repeated fixed32 a = 1;", ""),
    Pair("an optional sint64 becomes repeated", "optional sint64 a = 1;", "repeated sint64 a = 1;", ""),
    Pair("an optional string becomes repeated", "optional string a = 1;", "repeated string a = 1;", "BF"),
    Pair("optional bytes become repeated", "optional bytes a = 1;", "repeated bytes a = 1;", "BF"),
    Pair("an optional message becomes repeated", "optional M a = 1;", "repeated M a = 1;", "BF"),
    Pair("an optional string becomes repeated bytes", "optional string a = 1;", "repeated bytes a = 1;", "BF"),
    Pair("a repeated number becomes a string", "repeated int32 a = 1;", "repeated string a = 1;", ""),
    Pair(
        "a repeated number is packed no more", "repeated int32 a = 1;", "repeated int32 a = 1 [packed = false];", "BF"
    ),
]

REQUIRED = [
    Pair("a required field is added", "proto2: optional int32 a = 1;", "proto2: required int32 b = 2;", ""),
    Pair("a required field is kept", "proto2: required int32 a = 1;", "proto2: required int32 a = 1;", "BF"),
    Pair("a required field is renamed", "proto2: required int32 a = 1;", "proto2: required int32 b = 1;", "BF"),
    Pair("a required field is numbered anew", "proto2: required int32 a = 1;", "proto2: required int32 a = 2;", ""),
    Pair("an optional number becomes required", "proto2: optional int32 a = 1;", "proto2: required int32 a = 1;", ""),
    Pair(
        "an optional string becomes required", "proto2: optional string a = 1;", "proto2: required string a = 1;", "BF"
    ),
    Pair("an optional message becomes required", "proto2: optional M a = 1;", "proto2: required M a = 1;", "BF"),
    Pair(
        "a required string becomes repeated", "proto2: required string a = 1;", "proto2: repeated string a = 1;", "BF"
    ),
    Pair("a required number becomes repeated", "proto2: required int32 a = 1;", "proto2: repeated int32 a = 1;", ""),
    Pair("a default changes", "proto2: optional int32 a = 1 [default = 1];", "proto2: optional int32 a = 1;", "BF"),
    Pair("extensions are allowed", "proto2: optional int32 a = 1;", "proto2: extensions 100 to max;", "BF"),
    Pair("proto2 becomes proto3", "proto2: optional int32 a = 1;", "int32 a = 1;", "BF"),
    Pair("proto2 becomes proto3 with labels", "proto2: optional int32 a = 1;", "optional int32 a = 1;", "BF"),
    Pair("proto3 drops a required field of proto2", "proto2: required int32 a = 1;", "int32 b = 2;", ""),
    Pair("proto3 keeps a required field of proto2", "proto2: required int32 a = 1;", "int32 a = 1;", "BF"),
    Pair(
        "a group's field is of another kind",
        "proto2: optional group G = 1 { optional int32 a = 1; }",
        "proto2: optional group G = 1 { optional string a = 1; }",
        "",
    ),
    Pair(
        "a group's field is added",
        "proto2: optional group G = 1 { optional int32 a = 1; }",
        "proto2: optional group G = 1 { optional int32 a = 1; optional int32 b = 2; }",
        "BF",
    ),
    Pair(
        "a group becomes a message",
        "proto2: optional group G = 1 { optional int32 a = 1; }",
        "proto2: optional G g = 1; message G { optional int32 a = 1; }",
        "",
    ),
]

ENUMS = [
    Pair("a constant is added", "E e = 1; enum E { A = 0; }", "E e = 1; enum E { A = 0; B = 1; }", "BF"),
    Pair("a constant is renamed", "E e = 1; enum E { A = 0; }", "E e = 1; enum E { B = 0; }", "BF"),
    Pair("a constant is numbered anew", "enum E { A = 0; B = 1; }", "enum E { A = 0; B = 2; }", "BF"),
    Pair(
        "a constant becomes an alias",
        "enum E { A = 0; B = 1; }",
        "enum E { option allow_alias = true; A = 0; B = 0; }",
        "BF",
    ),
    Pair("an enum is added", "int32 a = 1;", "int32 a = 1; enum E { A = 0; }", "BF"),
    Pair("an enum is renamed", "E e = 1; enum E { A = 0; }", "F e = 1; enum F { A = 0; }", "BF"),
    Pair("a number becomes an enum", "int32 e = 1;", "E e = 1; enum E { A = 0; }", "BF"),
    Pair("a bool becomes an enum", "bool e = 1;", "E e = 1; enum E { A = 0; }", "BF"),
    Pair("a zigzag number becomes an enum", "sint32 e = 1;", "E e = 1; enum E { A = 0; }", ""),
    Pair("a string becomes an enum", "string e = 1;", "E e = 1; enum E { A = 0; }", ""),
    Pair("an enum becomes a message", "E e = 1; enum E { A = 0; }", "F e = 1; message F {}", ""),
    Pair(
        "an optional enum becomes repeated",
        "optional E e = 1; enum E { A = 0; }",
        "repeated E e = 1; enum E { A = 0; }",
        "",
    ),
    Pair(
        "an enum moves out of a message",
        "E e = 1; enum E { A = 0; }",
        "file: message M { E e = 1; } enum E { A = 0; }",
        "BF",
    ),
]

MESSAGES = [
    Pair("a message is added", "file: message M {}", "file: message M {} message N {}", "B"),
    Pair("a message is added in front", "file: message M {}", "file: message N {} message M {}", "B"),
    Pair("messages change places", "file: message M {} message N {}", "file: message N {} message M {}", "BF"),
    Pair("a message is renamed", "file: message M {}", "file: message N {}", ""),
    Pair("a nested message is added", "int32 a = 1;", "int32 a = 1; message N {}", "B"),
    Pair("a nested message is renamed", "N n = 1; message N {}", "O n = 1; message O {}", ""),
    Pair("a nested message moves out", "N n = 1; message N {}", "file: message M { N n = 1; } message N {}", ""),
    Pair("a nested message changes", "N n = 1; message N { int32 a = 1; }", "N n = 1; message N { string a = 1; }", ""),
    Pair("a nested message grows", "N n = 1; message N {}", "N n = 1; message N { string a = 1; }", "BF"),
    Pair("an unused message changes", "message N { int32 a = 1; }", "message N { string a = 1; }", ""),
    Pair("nested messages change places", "message N {} message O {}", "message O {} message N {}", "BF"),
    Pair("a message becomes a scalar", "M m = 1;", "int32 m = 1;", ""),
    Pair("a message becomes bytes", "M m = 1;", "bytes m = 1;", ""),
    Pair(
        "a message becomes another one", "N n = 1; message N {} message O {}", "O n = 1; message N {} message O {}", ""
    ),
    Pair(
        "a name is written in full",
        "file: package p; message M { M m = 1; }",
        "file: package p; message M { .p.M m = 1; }",
        "BF",
    ),
    Pair("a message refers to itself", "M m = 1;", "M m = 1; int32 a = 2;", "BF"),
    Pair("a package is added", "file: message M {}", "file: package p; message M {}", ""),
    Pair("a package changes", "file: package p; message M {}", "file: package q; message M {}", ""),
    Pair("a service is added", "file: message M {}", "file: message M {} service S { rpc Do (M) returns (M); }", "BF"),
    Pair(
        "an option changes",
        'file: option java_package = "a"; message M {}',
        'file: option java_package = "b"; message M {}',
        "BF",
    ),
    Pair(
        "a deep message changes",
        "message N { message O { int32 a = 1; } }",
        "message N { message O { bytes a = 1; } }",
        "",
    ),
    Pair("a deep message is added", "message N { }", "message N { message O { bytes a = 1; } }", "B"),
    Pair(
        "an extension is added",
        "file2: message M { extensions 5; }",
        "file2: message M { extensions 5; } extend M { optional int32 a = 5; }",
        "BF",
    ),
]

MAPS = [
    Pair("a map's value grows", "map<string, int32> m = 1;", "map<string, int64> m = 1;", "BF"),
    Pair("a map's value is of another kind", "map<string, int32> m = 1;", "map<string, string> m = 1;", ""),
    Pair("a map's key grows", "map<int32, int32> m = 1;", "map<int64, int32> m = 1;", "BF"),
    Pair("a map's key is of another kind", "map<int32, int32> m = 1;", "map<string, int32> m = 1;", ""),
    Pair("a map's strings become bytes", "map<string, string> m = 1;", "map<string, bytes> m = 1;", "BF"),
    Pair("a map's value becomes a message", "map<string, int32> m = 1;", "map<string, M> m = 1;", ""),
    Pair("a map's value becomes an enum", "map<string, int32> m = 1;", "map<string, E> m = 1; enum E { A = 0; }", "BF"),
    Pair(
        "a map's message is another one", "map<string, M> m = 1; message N {}", "map<string, N> m = 1; message N {}", ""
    ),
    Pair("a map is renamed", "map<string, int32> m = 1;", "map<string, int32> n = 1;", "BF"),
    Pair("a map is added", "int32 a = 1;", "int32 a = 1; map<string, int32> m = 2;", "BF"),
    Pair("a map becomes a scalar", "map<string, int32> m = 1;", "string m = 1;", ""),
    Pair("a map becomes a repeated scalar", "map<string, int32> m = 1;", "repeated string m = 1;", ""),
    Pair(
        "a map becomes repeated messages of its form",
        "map<string, int32> m = 1; message N { string key = 1; int32 value = 2; }",
        "repeated N m = 1; message N { string key = 1; int32 value = 2; }",
        "",
    ),
]

ONEOFS = [
    Pair("a new oneof has new fields", "int32 a = 1;", "int32 a = 1; oneof o { int32 b = 2; int32 c = 3; }", "BF"),
    Pair("one field moves into a new oneof", "int32 a = 1;", "oneof o { int32 a = 1; }", "BF"),
    Pair("one field moves into a new oneof with others", "int32 a = 1;", "oneof o { int32 a = 1; int32 b = 2; }", "B"),
    Pair("two fields move into a new oneof", "int32 a = 1; int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }", "F"),
    Pair(
        "three fields move into a new oneof",
        "int32 a = 1; int32 b = 2; int32 c = 3;",
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; }",
        "F",
    ),
    Pair(
        "a field moves into an existing oneof",
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "F",
    ),
    Pair("a field is added to a oneof", "oneof o { int32 a = 1; }", "oneof o { int32 a = 1; int32 b = 2; }", "B"),
    Pair("a oneof is renamed", "oneof o { int32 a = 1; }", "oneof p { int32 a = 1; }", "BF"),
    Pair(
        "a oneof is renamed and loses a field", "oneof o { int32 a = 1; int32 b = 2; }", "oneof p { int32 a = 1; }", "F"
    ),
    Pair("a whole oneof goes", "int32 a = 1; oneof o { int32 b = 2; int32 c = 3; }", "int32 a = 1;", "BF"),
    Pair("a oneof's field is of another kind", "oneof o { int32 a = 1; }", "oneof o { string a = 1; }", ""),
    Pair("a oneof's field grows", "oneof o { int32 a = 1; }", "oneof o { int64 a = 1; }", "BF"),
    Pair("a oneof's field is renamed", "oneof o { int32 a = 1; }", "oneof o { int32 b = 1; }", "BF"),
    Pair("a oneof's field is numbered anew", "oneof o { int32 a = 1; }", "oneof o { int32 a = 2; }", ""),
    Pair("a oneof dissolves", "oneof o { int32 a = 1; int32 b = 2; }", "int32 a = 1; int32 b = 2;", "B"),
    Pair("a oneof of one dissolves", "oneof o { int32 a = 1; }", "int32 a = 1;", "BF"),
    Pair(
        "a field leaves a oneof",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "int32 a = 1; oneof o { int32 b = 2; }",
        "B",
    ),
    Pair(
        "a field leaves a oneof and changes its kind",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "string a = 1; oneof o { int32 b = 2; }",
        "",
    ),
    Pair(
        "a field moves between oneofs",
        "oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; int32 c = 3; }",
        "",
    ),
    Pair(
        "two oneofs become one",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        "oneof q { int32 a = 1; int32 b = 2; }",
        "F",
    ),
    Pair(
        "a oneof is divided",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        "B",
    ),
    Pair(
        "a field leaves for another oneof of its own and one goes",
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        "",
    ),
    Pair("an optional field moves into a oneof", "optional int32 a = 1;", "oneof o { int32 a = 1; }", "BF"),
    Pair(
        "two optional fields move into a oneof",
        "optional int32 a = 1; optional int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "F",
    ),
    Pair(
        "a oneof's message is another one", "oneof o { M m = 1; } message N {}", "oneof o { N m = 1; } message N {}", ""
    ),
]

LIB = "message L { int32 a = 1; message I { int32 b = 1; } }"
LIB_GROWN = "message L { int32 a = 1; string c = 2; message I { int32 b = 1; } }"
LIB_BROKEN = "message L { string a = 1; message I { int32 b = 1; } }"
LIB_INNER_BROKEN = "message L { int32 a = 1; message I { string b = 1; } }"
LIB_DEEP = "message L { K k = 1; message I {} } message K { L l = 1; int32 a = 2; }"
LIB_DEEP_BROKEN = "message L { K k = 1; message I {} } message K { L l = 1; string a = 2; }"
USE = 'file: import "lib.proto"; message M { L l = 1; }'
USE_INNER = 'file: import "lib.proto"; message M { L.I i = 1; }'
USE_IN_PACKAGE = 'file: import "lib.proto"; message M { %s.L l = 1; }'

IMPORTS = [
    Pair("an import stays as it is", USE, USE, "BF", LIB, LIB),
    Pair("an imported message grows", USE, USE, "BF", LIB, LIB_GROWN),
    Pair("an imported message's field is of another kind", USE, USE, "", LIB, LIB_BROKEN),
    Pair("a message within an imported one changes", USE_INNER, USE_INNER, "", LIB, LIB_INNER_BROKEN),
    Pair("an imported message that is not used changes", USE_INNER, USE_INNER, "BF", LIB, LIB_BROKEN),
    Pair("an imported message refers to itself", USE, USE, "BF", LIB_DEEP, LIB_DEEP),
    Pair("a message that an imported one has changes", USE, USE, "", LIB_DEEP, LIB_DEEP_BROKEN),
    Pair("an imported message moves in", USE, f"file: {LIB} message M {{ L l = 1; }}", "B", LIB),
    Pair("an imported message moves in and changes", USE, f"file: {LIB_BROKEN} message M {{ L l = 1; }}", "", LIB),
    Pair("a message moves out to an import", f"file: {LIB} message M {{ L l = 1; }}", USE, "F", "", LIB),
    Pair(
        "an imported message moves to another package",
        USE_IN_PACKAGE % "p",
        USE_IN_PACKAGE % "q",
        "BF",
        f"package p; {LIB}",
        f"package q; {LIB}",
    ),
    Pair(
        "an imported message moves to another package and changes",
        USE_IN_PACKAGE % "p",
        USE_IN_PACKAGE % "q",
        "",
        f"package p; {LIB}",
        f"package q; {LIB_BROKEN}",
    ),
    Pair("an imported message is another one", USE, USE_INNER, "", LIB, LIB),
    Pair(
        "an import comes",
        "int32 a = 1;",
        'file: import "lib.proto"; message M { int32 a = 1; L l = 2; }',
        "BF",
        "",
        LIB,
    ),
    Pair(
        "a well-known type stays",
        'file: import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }',
        'file: import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; int32 a = 2; }',
        "BF",
    ),
    Pair(
        "a well-known type is another one",
        'file: import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }',
        'file: import "google/protobuf/duration.proto"; message M { google.protobuf.Duration t = 1; }',
        "",
    ),
    Pair(
        "a well-known type becomes a number",
        'file: import "google/protobuf/wrappers.proto"; message M { google.protobuf.Int64Value t = 1; }',
        "int64 t = 1;",
        "",
    ),
]

PAIRS = [
    *scalars(SAME_BYTES, "BF"),
    *scalars(OTHER_BYTES, ""),
    *(FIELDS + REQUIRED + ENUMS + MESSAGES + MAPS + ONEOFS + IMPORTS),
]
