"""Which pairs of Avro schemas are compatible, by a table and beside Java's own library."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.schemas import avro
from moldau.schemas.model import Incompatibility, InvalidSchema
from tests.schemas.avro import java_avro
from tests.schemas.avro.generating import schema_text
from tests.schemas.pairs import read_pairs, reasons, wrong_rows

PAIRS = read_pairs(Path(__file__).with_name("pairs.txt"))
beside_java = pytest.mark.skipif(not java_avro.available(), reason="needs a JDK, and Maven for Avro's jars")


def compare(reader: str, writer: str) -> Sequence[Incompatibility]:
    return avro.parse(reader).incompatibilities(avro.parse(writer))


def test_the_table_is_large_and_has_each_row_once() -> None:
    assert len(PAIRS) >= 150
    assert len({row.what for row in PAIRS}) == len(PAIRS)
    assert len({(row.old, row.new) for row in PAIRS}) == len(PAIRS)


def test_each_pair_of_the_table() -> None:
    assert not wrong_rows(PAIRS, compare)


def test_each_schema_of_the_table_reads_what_it_wrote() -> None:
    assert not [row.old for row in PAIRS if compare(row.old, row.old) or compare(row.new, row.new)]


def test_a_verdict_is_a_sentence_with_the_schema_that_is_new() -> None:
    new = '{"type":"record","name":"R","fields":[{"name":"b","type":"int"}]}'
    (found,) = compare(new, '{"type":"record","name":"R","fields":[]}')
    assert found.described(reader="new", writer="old") == (
        "The field 'b' at path '/fields/0' in the new schema has no default value and is missing in the old schema"
    )
    assert found.detail == "b"


def test_two_recursive_schemas_are_compared_around_all_their_cycles() -> None:
    def cycle(length: int, last: str) -> str:
        records = [
            f'{{"type":"record","name":"R","namespace":"n{at}","fields":['
            f'{{"name":"next","type":["null","n{(at + 1) % length}.R"]}}{last if at == length - 1 else ""}]}}'
            for at in range(length)
        ]
        return f'{{"type":"array","items":[{",".join(records)}]}}'

    assert not compare(cycle(31, ""), cycle(37, ""))
    assert compare(cycle(31, ',{"name":"x","type":"int"}'), cycle(37, ""))


def test_differences_that_many_fields_share_are_told_a_thousand_times_at_most() -> None:
    def chain(last: str) -> str:
        records = [
            f'{{"type":"record","name":"R{at}","fields":['
            f'{{"name":"a","type":"R{at + 1}"}},{{"name":"b","type":"R{at + 1}"}}]}}'
            for at in range(40)
        ]
        return f'[{",".join([*records, f"""{{"type":"record","name":"R40","fields":[{last}]}}"""])}]'

    assert 0 < len(compare(chain('{"name":"x","type":"int"}'), chain(""))) <= 1_000


def test_unions_that_take_too_long_to_compare_are_incompatible() -> None:
    union = ",".join(f'{{"type":"fixed","name":"n{at}.F","size":{at}}}' for at in range(1_000))
    kinds = {each.kind for each in compare(f"[{union}]", f"[{union}]")}
    assert kinds <= {"TOO_COMPLEX", "MISSING_UNION_BRANCH"}


@beside_java
@pytest.mark.xdist_group("java-avro")
def test_java_says_the_same_of_each_pair_of_the_table() -> None:
    both_ways = [pair for row in PAIRS for pair in ((row.new, row.old, row.backward), (row.old, row.new, row.forward))]
    answers = java_avro.ask([{"reader": reader, "writer": writer} for reader, writer, _ in both_ways])
    found = [{f"{kind} {path}" for kind, path, _ in answer["incompatibilities"]} for answer in answers]
    assert found == [set(expected) for _, _, expected in both_ways]


@beside_java
@pytest.mark.xdist_group("java-avro")
@pytest.mark.parametrize(("seed", "count"), [(1, 1_000), pytest.param(2, 30_000, marks=pytest.mark.long)])
def test_java_says_the_same_of_pairs_from_a_seed(seed: int, count: int) -> None:
    """The verdict and each reason in Java's words; its place can be where Java met the pair first, in another union."""
    chance = random.Random(seed)
    pairs = [(schema_text(chance), schema_text(chance)) for _ in range(count // 2)]
    pairs += [(reader, _changed(reader, chance)) for reader, _ in pairs]
    answers = java_avro.ask([{"reader": reader, "writer": writer} for reader, writer in pairs])
    compatible = 0
    for (reader, writer), answer in zip(pairs, answers, strict=True):
        found = compare(reader, writer)
        if "error" in answer:
            assert "multiple fields" in answer["error"], (reader, writer)
            continue  # Java ends with an exception there, also where another branch of a union would do
        said = {(kind, message) for kind, _, message in answer["incompatibilities"]}
        assert {(each.kind, each.detail) for each in found} == said, (reader, writer, reasons(found))
        compatible += not found
    assert count / 20 < compatible < count * 0.9, "pairs of both kinds"


def _changed(text: str, chance: random.Random) -> str:
    """One word is another one, and where that is no schema nothing is."""
    words = [("int", "long"), ("long", "int"), ("string", "bytes"), ('"X"', '"W"'), ('"a"', '"e"'), ("float", "double")]
    chance.shuffle(words)
    for old, new in words:
        changed = text.replace(old, new, 1)
        try:
            avro.parse(changed)
        except InvalidSchema:
            continue
        if changed != text:
            return changed
    return text
