"""What is deep is refused before Python's own limit of calls is reached, also inside a server's calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from moldau.schemas import avro, json_schema
from moldau.schemas.model import InvalidSchema, InvalidValue, Json

SERVERS_CALLS = 300  # that are on the stack already, of a thousand
DEPTHS = (1, 45, 64, 99, 100, 101, 150, 198, 1_000)

LIST = avro.parse('{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}')
MAPS = avro.parse('{"type":"record","name":"L","fields":[{"name":"n","type":{"type":"map","values":["null","L"]}}]}')
TREE = json_schema.parse('{"properties":{"a":{"$ref":"#"}},"items":{"$ref":"#"}}')


def nested(depth: int, around: Callable[[Json], Json]) -> Json:
    value: Json = None
    for _ in range(depth):
        value = around(value)
    return value


def chain(depth: int) -> str:
    links = [
        f'{{"type":"record","name":"R{at}","fields":[{{"name":"a","type":["null","R{at + 1}"]}}]}}'
        for at in range(depth)
    ]
    return f'[{",".join([*links, f"""{{"type":"record","name":"R{depth}","fields":[]}}"""])}]'


def use(parse: Callable[[str], Any], before: str, inner: tuple[str, str], after: str, depth: int) -> None:
    one, other = (parse(before * depth + each + after * depth) for each in inner)
    assert one.canonical
    assert one.normalized
    assert one.formatted("resolved")
    one.incompatibilities(other)
    assert not one.incompatibilities(one)


CASES: dict[str, Callable[[int], object]] = {
    "arrays": lambda depth: use(avro.parse, '{"type":"array","items":', ('"int"', '"string"'), "}", depth),
    "maps of unions": lambda depth: use(
        avro.parse, '{"type":"array","items":["null",{"type":"map","values":', ('"int"', '"string"'), "}]}", depth
    ),
    "records by name": lambda depth: use(avro.parse, "", (chain(depth), chain(depth)), "", 1),
    "defaults": lambda depth: avro.parse(
        '{"type":"record","name":"A","fields":[{"name":"f","type":["null","A"]},{"name":"g","type":["null","A"],"default":'
        + '{"f":' * depth + "null" + "}" * depth + "}]}"
    ),
    "reading a list": lambda depth: LIST.decode(b"\x02" * depth + b"\0"),
    "writing a list": lambda depth: LIST.encode(nested(depth, lambda value: {"n": value and {"L": value}})),
    "writing a plain list": lambda depth: LIST.encode(nested(depth, lambda value: {"n": value})),
    "writing maps": lambda depth: MAPS.encode(nested(depth, lambda value: {"n": {"k": value and {"L": value}}})),
    "items": lambda depth: use(json_schema.parse, '{"items":', ("{}", "true"), "}", depth),
    "properties": lambda depth: use(json_schema.parse, '{"properties":{"a":', ("{}", "true"), "}}", depth),
    "products": lambda depth: use(json_schema.parse, '{"allOf":[{"type":"object"},', ("{}", "true"), "]}", depth),
    "not": lambda depth: use(json_schema.parse, '{"not":', ('{"type":"null"}', "{}"), "}", depth),
    "judging a value": lambda depth: TREE.encode(TREE.decode(b'{"a":' * depth + b"1" + b"}" * depth)),
}  # fmt: skip


def calls_below(depth: int, task: Callable[[], object]) -> object:
    return task() if depth == 0 else calls_below(depth - 1, task)


@pytest.mark.parametrize("name", CASES)
def test_what_is_deep_is_used_or_refused(name: str) -> None:
    used = 0
    for depth in DEPTHS:
        try:
            calls_below(SERVERS_CALLS, lambda depth=depth: CASES[name](depth))  # type: ignore[misc]
            used += 1
        except (InvalidSchema, InvalidValue):
            continue
        except AssertionError:
            assert name == "not", "a schema reads itself, but for what is too complex"
            assert depth > 10
    assert 0 < used < len(DEPTHS), "some are used, and some are refused"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (avro.parse, "/* " * 25_000),
        (avro.parse, '/"' + '\\"' * 35_000),
        (json_schema.parse, '"' + '\\"' * 35_000),
        (TREE.decode, b'"' + b'\\"' * 35_000),
    ],
    ids=["comments", "strings beside comments", "strings of a schema", "strings of a value"],
)
def test_what_has_no_end_is_looked_at_once(read: Callable[[Any], Any], text: str | bytes) -> None:
    """Each of its characters was tried as another beginning: half a minute of these, and hours of a megabyte."""
    began_s = time.process_time()
    with pytest.raises((InvalidSchema, InvalidValue)):
        read(text)
    assert time.process_time() - began_s < 2


@pytest.mark.parametrize("text", ['"int" /*', '"int" /*/', '"int" /* *'])
def test_a_comment_has_an_end(text: str) -> None:
    with pytest.raises(InvalidSchema, match="a comment has no end"):
        avro.parse(text)
