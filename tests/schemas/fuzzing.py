# ruff: noqa: E501  the pieces are a table
"""Noise for what reads schemas and values of Avro and JSON Schema.

    python -m tests.schemas.fuzzing --seconds 60 --seed 7

Each of them has its declared errors, and nothing else may come out. One input may take some seconds of the processor
where a schema is at its limits, and half of one otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from moldau.schemas import avro, json_schema
from moldau.schemas.model import InvalidSchema, InvalidValue, ParsedSchema
from tests.schemas.pairs import read_pairs

CPU_S_MAX = 5.0  # of one input on a busy machine: the limits allow a second or two on a quiet one
BLOWN_UP_CHARS = 300_000
HERE = Path(__file__).parent

PIECES = (
    "{", "}", "[", "]", '"', ",", ":", "\\", "\0", "é", "\\ud800", "null", "true", "1e999", "9" * 5_000, "-0.0", "NaN",
    '"type"', '"name"', '"fields"', '"items":', '"int"', '"R"', '"default":', '"namespace":"a.b"', '"symbols":[', '"size":',
    '{"type":"array","items":', '{"type":"record","name":"R","fields":[{"name":"a","type":', '["null",', '"aliases":["a"]',
    '"$ref":"#"', '"$ref":"#/definitions/a"', '"$ref":"x.json"', '"$id":"http://a/b"', '"allOf":[{"$ref":"#"}]', '"$schema":',
    '"http://json-schema.org/draft-04/schema#"', '"https://json-schema.org/draft/2020-12/schema"', '"pattern":"(a+)+$"',
    '{"properties":{"a":', '{"not":', '{"anyOf":[', '"additionalProperties":', '"definitions":{"a":', '"required":["a"]',
    '"$dynamicRef":"#m"', '"$anchor":"m"', '"multipleOf":1e-300', '"maximum":', '"enum":[', '"patternProperties":{"^a":',
)  # fmt: skip
PAYLOADS = (
    b"",
    b"\x00",
    b"\x02" * 5_000,
    b"\xff" * 11,
    b"{}",
    b'{"a":{"a":{"a":1}}}',
    b"[" * 5_000,
    b'"' + b"a" * 9_999,
)

Parse = Callable[[str], ParsedSchema]


def parsers() -> dict[str, tuple[Parse, list[str]]]:
    found: dict[str, tuple[Parse, list[str]]] = {}
    of_types: dict[str, Parse] = {"avro": avro.parse, "json_schema": json_schema.parse}
    for name, parse in of_types.items():
        rows = read_pairs(HERE / name / "pairs.txt")
        found[name] = (parse, [text for row in rows for text in (row.old, row.new)])
    return found


def noise(chance: random.Random, seeds: list[str]) -> str:
    """A seed with changes, pieces in any order, or one piece again and again."""
    kind = chance.random()
    if kind < 0.03:
        piece = chance.choice(PIECES)
        return piece * (BLOWN_UP_CHARS // len(piece))
    if kind < 0.06:
        depth, piece = chance.choice((50, 190)), chance.choice([each for each in PIECES if each[0] == "{" != each])
        inner = chance.choice(seeds)
        return piece * depth + inner + "".join({"{": "}", "[": "]"}.get(each, "") for each in piece[::-1]) * depth
    if kind < 0.15:
        return "".join(chance.choice(PIECES) for _ in range(chance.randrange(40)))
    if kind < 0.6:
        return json.dumps(_grafted(chance, json.loads(chance.choice(seeds)), json.loads(chance.choice(seeds))))
    text = chance.choice(seeds)
    for _ in range(chance.randrange(1, 5)):
        at, size = chance.randrange(len(text) + 1), chance.choice((0, 0, 1, 2, 8))
        text = text[:at] + chance.choice((chance.choice(PIECES), chance.choice(seeds), "")) + text[at + size :]
    return text


def _grafted(chance: random.Random, tree: Any, branch: Any) -> Any:
    """One node of a tree, or what it hangs on, is another tree: most of what comes out is a schema."""
    if chance.random() < 0.15 or not isinstance(tree, list | dict) or not tree:
        return branch
    if isinstance(tree, list):
        at = chance.randrange(len(tree))
        return [_grafted(chance, each, branch) if index == at else each for index, each in enumerate(tree)]
    name = chance.choice(sorted(tree))
    return {key: _grafted(chance, value, branch) if key == name else value for key, value in tree.items()}


def try_one(parse: Parse, text: str, other: str) -> str | None:
    """What is wrong with how a text was parsed, compared and used."""
    begun_s = time.thread_time()
    try:
        schema = parse(text)
        again = parse(schema.canonical)
        if again.canonical != schema.canonical or parse(schema.normalized).normalized != schema.normalized:
            return f"printed again it is another: {text[:300]!r}"
        schema.incompatibilities(parse(other))
        parse(other).incompatibilities(schema)
        if any(each.kind not in ("AMBIGUOUS_ALIAS", "TOO_COMPLEX") for each in schema.incompatibilities(again)):
            return f"it does not read itself: {text[:300]!r}"
        for payload in PAYLOADS:
            try:
                schema.encode(schema.decode(payload))
            except InvalidValue:
                continue
    except InvalidSchema:
        pass
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong} from {text[:300]!r}"
    took_s = time.thread_time() - begun_s
    return f"{took_s:.2f} s for {len(text)} characters: {text[:300]!r}" if took_s > CPU_S_MAX else None


def fuzz(inputs: Iterator[int], seed: int) -> Iterator[str]:
    chance, tried, schemas = random.Random(seed), 0, 0
    found = parsers()
    for _ in inputs:
        name = chance.choice(list(found))
        parse, seeds = found[name]
        text = noise(chance, seeds)
        tried += 1
        schemas += _is_schema(parse, text)
        trouble = try_one(parse, text, chance.choice(seeds))
        if trouble is not None:
            yield f"{name}: {trouble}"
    sys.stderr.write(f"{tried} inputs, of which {schemas} are schemas\n")


def _is_schema(parse: Parse, text: str) -> bool:
    try:
        parse(text)
    except InvalidSchema:
        return False
    return True


def _until(end_s: float) -> Iterator[int]:
    count = 0
    while time.monotonic() < end_s:
        yield count
        count += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    troubles = 0
    for trouble in fuzz(_until(time.monotonic() + wanted.seconds), wanted.seed):
        troubles += 1
        print(json.dumps(trouble))
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
