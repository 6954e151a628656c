"""Whether a reader's schema reads what a writer's wrote: the rules of Java's SchemaCompatibility, and its words.

A walk over pairs of types. It is written with generators and a stack of its own, because the depth of two recursive
schemas together is not bounded by the depth of either.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from moldau.core import limits
from moldau.schemas.avro.types import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Known,
    Map,
    Named,
    Names,
    Primitive,
    Record,
    Type,
    Union,
    kind_of,
    known,
)
from moldau.schemas.model import Incompatibility

Path = tuple[str, ...]
Found = list[Incompatibility]
Walk = Generator["_Pair", Found, Found]

# What a reader of the first kind can read besides its own.
PROMOTIONS: dict[str, frozenset[str]] = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "bytes": frozenset({"string"}),
    "string": frozenset({"bytes"}),
}


_DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the {{reader}} schema does not match with "
    "the {{writer}} schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the {{reader}} schema does not match with the {{writer}} "
    "schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": "The {{reader}} schema is missing enum symbols '{detail}' at path '{path}' in the "
    "{{writer}} schema",
    "MISSING_UNION_BRANCH": "The {{reader}} schema is missing a type inside a union field at path '{path}' in the "
    "{{writer}} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{detail}' at path '{path}' in the {{reader}} schema has no "
    "default value and is missing in the {{writer}} schema",
    "AMBIGUOUS_ALIAS": "The name and the aliases of a field of the {{reader}} schema at path '{path}' stand for more "
    "than one field of the {{writer}} schema",
}


@dataclass(frozen=True, slots=True)
class _Pair:
    reader: Type
    writer: Type
    path: Path


@dataclass(frozen=True, slots=True)
class Schema:
    """A type with what its names stand for."""

    root: Type
    names: Names


class _TooMuch(Exception):
    """The comparison takes more steps than are allowed."""


def incompatibilities(reader: Schema, writer: Schema) -> Sequence[Incompatibility]:
    """Empty if the reader can read everything."""
    try:
        found = _Comparison(reader.names, writer.names).run(_Pair(reader.root, writer.root, ()))
    except _TooMuch:
        return [Incompatibility("TOO_COMPLEX", "/", "The {reader} and the {writer} schema take too long to compare")]
    return found


@dataclass(slots=True)
class _Comparison:
    readers: Names
    writers: Names
    verdicts: dict[tuple[int, int], Found] = field(default_factory=dict)
    steps: int = limits.SCHEMA_STEPS_MAX

    def run(self, pair: _Pair) -> Found:
        """Recursion on the heap: a walk hands out the pair that it needs judged, and is resumed with the verdict."""
        walks = [self._judged(pair)]
        verdict: Found | None = None
        while walks:
            try:
                needed = next(walks[-1]) if verdict is None else walks[-1].send(verdict)
            except StopIteration as end:
                verdict = end.value
                walks.pop()
            else:
                verdict = None
                walks.append(self._judged(needed))
        assert verdict is not None, "the first walk ends with a verdict"
        return verdict

    def _judged(self, pair: _Pair) -> Walk:
        reader, writer = known(pair.reader, self.readers), known(pair.writer, self.writers)
        key = (id(reader), id(writer))
        verdict = self.verdicts.get(key)
        if verdict is None:
            self._spend(_size(reader) + _size(writer))
            # A pair that is met again inside itself is compatible unless something else in it is not.
            self.verdicts[key] = []
            verdict = (yield from self._walk(reader, writer, pair.path))[: limits.INCOMPATIBILITIES_MAX]
            self.verdicts[key] = verdict
        return verdict

    def _spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise _TooMuch

    def _walk(self, reader: Known, writer: Known, path: Path) -> Walk:
        if isinstance(writer, Union):
            return (yield from self._written_by_union(reader, writer, path))
        if isinstance(reader, Union):
            return (yield from self._read_by_union(reader, writer, path))
        if isinstance(reader, Array) and isinstance(writer, Array):
            return (yield _Pair(reader.items, writer.items, (*path, "items")))
        if isinstance(reader, Map) and isinstance(writer, Map):
            return (yield _Pair(reader.values, writer.values, (*path, "values")))
        if isinstance(reader, Record) and isinstance(writer, Record):
            return (yield from self._records(reader, writer, path))
        return _leaves(reader, writer, path)

    def _written_by_union(self, reader: Known, writer: Union, path: Path) -> Walk:
        found: Found = []
        for index, branch in enumerate(writer.branches):
            if not isinstance(reader, Union):
                _extend(found, (yield _Pair(reader, branch, (*path, str(index)))))
            elif (yield _Pair(reader, branch, ())):
                found.append(_missing_branch(known(branch, self.writers), (*path, str(index))))
        return found

    def _read_by_union(self, reader: Union, writer: Known, path: Path) -> Walk:
        for branch in reader.branches:
            if self._may_fit(known(branch, self.readers), writer) and not (yield _Pair(branch, writer, ())):
                return []
        return [_missing_branch(writer, path)]

    def _may_fit(self, reader: Known, writer: Known) -> bool:
        """Most branches of a union are told from a type at a glance; pairs under way are not judged again."""
        self._spend(1)
        if (id(reader), id(writer)) in self.verdicts:
            return True
        if isinstance(reader, Named) and isinstance(writer, Named):
            self._spend(len(reader.heading.aliases))
            return type(reader) is type(writer) and _names_match(reader, writer)
        return not _leaves(reader, writer, ()) if isinstance(reader, Primitive) else type(reader) is type(writer)

    def _records(self, reader: Record, writer: Record, path: Path) -> Walk:
        found = _name_mismatch(reader, writer, path)
        fields = {each.name: each for each in writer.fields}
        for index, each in enumerate(reader.fields):
            place = (*path, "fields", str(index))
            written = _written_as(each, fields)
            if len(written) > 1:
                names = " and ".join(sorted({other.name for other in written}))
                text = f"field {each.name} matches multiple fields: {names}"
                found.append(_incompatibility("AMBIGUOUS_ALIAS", place, text))
            elif written:
                _extend(found, (yield _Pair(each.type, written[0].type, (*place, "type"))))
            elif isinstance(each.default, Absent):
                _extend(found, (yield from self._missing(each, writer, place)))
        return found

    def _missing(self, field: Field, writer: Record, path: Path) -> Walk:
        """Java compares an enum that has a default of its own with the whole record, and so finds a type mismatch."""
        type_ = known(field.type, self.readers)
        if isinstance(type_, Enum) and type_.default is not None:
            return (yield _Pair(type_, writer, (*path, "type")))
        return [_incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", path, field.name)]


def _leaves(reader: Known, writer: Known, path: Path) -> Found:
    """Two types of which at least one has nothing inside, or of two different kinds."""
    if isinstance(reader, Primitive) and isinstance(writer, Primitive):
        if reader.kind == writer.kind or writer.kind in PROMOTIONS.get(reader.kind, ()):
            return []
    elif isinstance(reader, Fixed) and isinstance(writer, Fixed):
        found = _name_mismatch(reader, writer, path)
        if reader.size != writer.size:
            text = f"expected: {writer.size}, found: {reader.size}"
            found.append(_incompatibility("FIXED_SIZE_MISMATCH", (*path, "size"), text))
        return found
    elif isinstance(reader, Enum) and isinstance(writer, Enum):
        found = _name_mismatch(reader, writer, path)
        missing = sorted(set(writer.symbols).difference(reader.symbols))
        if missing and reader.default is None:
            found.append(_incompatibility("MISSING_ENUM_SYMBOLS", (*path, "symbols"), f"[{', '.join(missing)}]"))
        return found
    text = f"reader type: {kind_of(reader).upper()} not compatible with writer type: {kind_of(writer).upper()}"
    return [_incompatibility("TYPE_MISMATCH", path, text)]


def _written_as(field: Field, writers: dict[str, Field]) -> list[Field]:
    return [writers[name] for name in (field.name, *field.aliases) if name in writers]


def _names_match(reader: Named, writer: Named) -> bool:
    """The last part of the name counts, or a full name among the reader's aliases."""
    full_name = writer.heading.full_name
    return reader.heading.name == writer.heading.name or any(
        _alias_name(alias, reader) == full_name for alias in reader.heading.aliases
    )


def _alias_name(alias: str, reader: Named) -> str:
    """Java writes an alias without namespace, of a type that has one, with a dot; it matches nothing then."""
    return f".{alias}" if "." not in alias and reader.heading.namespace else alias


def _name_mismatch(reader: Named, writer: Named, path: Path) -> Found:
    if _names_match(reader, writer):
        return []
    return [_incompatibility("NAME_MISMATCH", (*path, "name"), f"expected: {writer.heading.full_name}")]


def _missing_branch(writer: Known, path: Path) -> Incompatibility:
    text = f"reader union lacking writer type: {kind_of(writer).upper()}"
    return _incompatibility("MISSING_UNION_BRANCH", path, text)


def _size(type_: Known) -> int:
    """About how long a look at it takes."""
    if isinstance(type_, Record):
        return len(type_.fields) + sum(len(each.aliases) for each in type_.fields)
    return len(type_.symbols) if isinstance(type_, Enum) else 1


def _extend(found: Found, more: Found) -> None:
    """What several fields have in common is found once for each; that doubles with every level, hence a limit."""
    found += more[: max(0, limits.INCOMPATIBILITIES_MAX - len(found))]


def _incompatibility(kind: str, path: Path, detail: str) -> Incompatibility:
    pointer = "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)
    return Incompatibility(kind, pointer, _DESCRIPTIONS[kind].format(path=pointer, detail=detail), detail)
