# ruff: noqa: E501  a row of a table is one line
"""Avro's texts: what is a schema, what is stored of it, and what is told of one that is none."""

from __future__ import annotations

import json
import random

import pytest

from moldau.schemas import avro
from moldau.schemas.model import InvalidSchema, ReferencedText, SchemaType
from tests.schemas.avro import java_avro
from tests.schemas.avro.generating import any_text

# What is given, and what is stored.
CANONICAL = [
    ('"string"', '"string"'),
    (' { "type" : "string" } ', '"string"'),
    ('{"type":"int","default":3,"doc":"x","name":"n"}', '{"type":"int","default":3}'),
    ('{"logicalType":"date","type":"int"}', '{"type":"int","logicalType":"date"}'),
    ('["null", {"type":"string","avro.java.string":"String"}]', '["null",{"type":"string","avro.java.string":"String"}]'),
    ('{"type":"array","items":{"type":"long"},"x":1.50}', '{"type":"array","items":"long","x":1.5}'),
    ('{"x":10000000000.0,"type":"map","values":"int"}', '{"type":"map","values":"int","x":1.0E10}'),
    ('{"size":2,"name":"a.b.F","type":"fixed"}', '{"type":"fixed","name":"F","namespace":"a.b","size":2}'),
    ('{"type":"enum","name":"E","symbols":["B","A"],"default":"A"}',) * 2,
    (
        '{"name":"R","doc":"d","type":"record","aliases":["S","x.T"],"namespace":"n","p":[1],"fields":[]}',
        '{"type":"record","name":"R","namespace":"n","doc":"d","fields":[],"p":[1],"aliases":["S","x.T"]}',
    ),
    (
        '{"type":"record","name":"R","fields":[{"type":"int","q":null,"order":"ascending","default":1,"doc":"é\\u00e9",'
        '"name":"f"}]}',
        '{"type":"record","name":"R","fields":[{"name":"f","type":"int","doc":"éé","default":1,"q":null}]}',
    ),
    (
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},'
        '{"name":"b","type":"n.F"},{"name":"c","type":["null","n.R"]}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},'
        '{"name":"b","type":"F"},{"name":"c","type":["null","R"]}]}',
    ),
    (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"F"},{"name":"b","type":{"type":"fixed","name":"F","size":1}}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":"F"}]}',
    ),
    (
        '{"type":"record","name":"record","namespace":"a","fields":[{"name":"x","type":["null","record"]}]}',
        '{"type":"record","name":"record","namespace":"a","fields":[{"name":"x","type":["null","a.record"]}]}',
    ),
    ('{"type":"record","name":"R","fields":[{"name":"f","type":"double","default":"NaN"}]}',) * 2,
    ('/* a */ {"type": "int" // b\n }', '"int"'),
]  # fmt: skip

# What is given, and what its author is told.
INVALID = [
    ("", "no JSON at line 1, column 1"),
    ("string", "no JSON at line 1, column 1"),
    ('"strin"', 'at the root: "strin" is neither defined here nor in a reference'),
    ("3", "at the root: 3 is no schema"),
    ("null", "at the root: null is no schema"),
    ("{}", 'at the root: no "type"'),
    ('{"type":{"type":"int"}}', 'at the root: no "type" that is a name'),
    ('{"type":"Foo"}', '"Foo" is no type to define'),
    ('"int" x', "no JSON at line 1, column 7"),
    ('["int","int"]', 'at /1: the union has "int" twice'),
    ('["int",["null"]]', "at /1: a union must not hold another one"),
    ('[{"type":"array","items":"int"},{"type":"array","items":"long"}]', 'the union has "array" twice'),
    ('{"type":"array"}', 'at the root: no "items"'),
    ('{"type":"map"}', 'at the root: no "values"'),
    ('{"type":"fixed","name":"F"}', "at /size: null is no size"),
    ('{"type":"fixed","name":"F","size":-1}', "at /size: -1 is no size"),
    ('{"type":"fixed","name":"F","size":3000000000}', "at /size: 3000000000 is no size"),
    ('{"type":"enum","name":"E"}', 'the enum "E" has no array of symbols'),
    ('{"type":"enum","name":"E","symbols":["A","A"]}', 'at /symbols: the symbol "A" is there twice'),
    ('{"type":"enum","name":"E","symbols":["a-b"]}', 'at /symbols/0: the symbol "a-b" is not made of letters'),
    ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', 'at /default: "B" is none of the symbols'),
    ('{"type":"record","name":"R"}', 'the record "R" has no array of fields'),
    ('{"type":"record","fields":[]}', 'no "name" that is a text'),
    ('{"type":"record","name":"1R","fields":[]}', 'at /name: the name "1R" is not made of letters'),
    ('{"type":"record","name":"R","namespace":"a..b","fields":[]}', 'the part of a namespace ""'),
    ('{"type":"record","name":"Ré","fields":[]}', "is not made of letters"),
    ('{"type":"record","name":"int","fields":[]}', 'must not be named as the primitive "int"'),
    ('{"type":"record","name":"R","fields":[{"name":"a"}]}', 'at /fields/0: no "type"'),
    ('{"type":"record","name":"R","fields":[{"type":"int"}]}', 'at /fields/0: no "name"'),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}', 'the field "a" is there twice'),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"Q"}]}', 'at /fields/0/type: "Q" is neither defined'),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}', 'at /fields/0/default: the default "x" does not fit'),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":1.0}]}', "the default 1.0 does not fit"),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":2147483648}]}', "does not fit"),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":null}]}', "the default null does not fit"),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":"x"}]}', "does not fit"),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":"x"}]}', '"x" is no number'),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}', '"up" is none of ascending'),
    ('{"type":"record","name":"R","aliases":"S","fields":[]}', "at /aliases: no array of names"),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":{"type":"fixed","name":"F","size":2}}]}', '"F" is defined a second time'),
    ('{"type":"record","name":"A","fields":[{"name":"x","type":{"type":"record","name":"x.B","fields":[{"name":"q","type":["null","A"]}]}}]}', '"x.A" is neither defined'),
    ('{"type":"int","a":"\\ud800"}', "half a surrogate pair"),
    ('{"type":"int","a":NaN}', "NaN is no JSON"),
    ('{"type":"int","a":1e999}', "larger than any number"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "stored"), CANONICAL)
def test_what_is_stored(text: str, stored: str) -> None:
    schema = avro.parse(text)
    assert schema.canonical == stored
    assert avro.parse(stored).canonical == stored, "printing changes nothing the second time"
    assert schema.type is SchemaType.AVRO


@pytest.mark.parametrize(("text", "told"), INVALID)
def test_what_is_no_schema_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        avro.parse(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"type":"record","name":"n.R","fields":[]}', "n.R"),
        ('{"type":"record","name":"R","fields":[]}', "R"),
        ('{"type":"enum","name":"E","symbols":[]}', None),
        ('"int"', None),
        ('["null",{"type":"record","name":"R","fields":[]}]', None),
    ],
)
def test_only_a_record_names_its_subject(text: str, name: str | None) -> None:
    assert avro.parse(text).record_name == name


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('{"type":"int","b":1,"a":{"d":1,"c":2}}', '{"a":{"c":2,"d":1},"type":"int","b":1}'),
        (
            '{"type":"bytes","a":1,"scale":2,"logicalType":"decimal","precision":4}',
            '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}',
        ),
        (
            '{"type":"record","name":"R","doc":"","aliases":["b","a"],"fields":[{"name":"d","type":"double","default":1}]}',
            '{"type":"record","name":"R","aliases":["a","b"],"fields":[{"name":"d","type":"double","default":1.0}]}',
        ),
    ],
)
def test_texts_that_mean_the_same_are_normalized_to_one(text: str, same: str) -> None:
    assert avro.parse(text).canonical != avro.parse(same).canonical
    assert avro.parse(text).normalized == avro.parse(same).normalized
    assert avro.parse(avro.parse(text).normalized).normalized == avro.parse(text).normalized


def test_a_logical_type_comes_first_where_java_knows_it() -> None:
    assert avro.parse('{"type":"int","a":1,"logicalType":"date"}').normalized == (
        '{"type":"int","logicalType":"date","a":1}'
    )
    assert avro.parse('{"type":"int","a":1,"logicalType":"uuid"}').normalized == (
        '{"type":"int","a":1,"logicalType":"uuid"}'
    )


# What Java takes and no other parser would: no number, and no character.
STRICTER = ('{"type":"int","a":1e999}', '{"type":"int","a":"\\ud800"}')

CUSTOMER = ReferencedText(
    "n.Customer",
    '{"type":"record","name":"Customer","namespace":"n","fields":[{"name":"kind",'
    '"type":{"type":"enum","name":"Kind","symbols":["A"]}}]}',
)
ORDER = '{"type":"record","name":"Order","namespace":"n","fields":[{"name":"c","type":"Customer"}]}'


def test_what_a_reference_defines_is_a_name_in_what_is_stored() -> None:
    order = avro.parse(ORDER, [CUSTOMER])
    assert order.canonical == ORDER
    assert order.normalized == ORDER
    assert json.loads(order.formatted("resolved"))["fields"][0]["type"]["fields"][0]["name"] == "kind"
    assert order.formatted("other") == order.canonical


def test_references_can_refer_to_references() -> None:
    cart = '{"type":"array","items":"n.Order"}'
    assert avro.parse(cart, [CUSTOMER, ReferencedText("n.Order", ORDER)]).canonical == cart
    with pytest.raises(InvalidSchema, match=r'reference "n\.Order": at /fields/0/type: "n\.Customer" is neither'):
        avro.parse(cart, [ReferencedText("n.Order", ORDER)])


def test_a_text_may_repeat_what_its_reference_defines() -> None:
    again = f'{{"type":"array","items":{CUSTOMER.text}}}'
    assert avro.parse(again, [CUSTOMER]).canonical == '{"type":"array","items":"n.Customer"}'
    with pytest.raises(InvalidSchema, match="defined a second time, and differently"):
        avro.parse(again.replace('"A"', '"B"'), [CUSTOMER])


@pytest.mark.skipif(not java_avro.available(), reason="needs a JDK, and Maven for Avro's jars")
@pytest.mark.xdist_group("java-avro")
def test_java_prints_and_refuses_the_same() -> None:
    chance = random.Random(5)
    texts = [text for text, *_ in CANONICAL] + [text for text, _ in INVALID] + [any_text(chance) for _ in range(500)]
    questions = [{"text": text} for text in texts] + [{"text": ORDER, "references": [CUSTOMER.text]}]
    for question, answer in zip(questions, java_avro.ask(questions), strict=True):
        text = str(question["text"])
        try:
            schema = avro.parse(text, [CUSTOMER] if "references" in question else ())
            printed: tuple[str | None, str | None] = schema.canonical, schema.resolved
        except InvalidSchema:
            printed = None, None
        if text not in STRICTER:
            assert printed == (answer.get("canonical"), answer.get("resolved")), question
