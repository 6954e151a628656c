"""What changed between two schemas, by the rules of Confluent's registry.

Messages that both schemas declare are compared at their place. Messages of other files are compared where a field has
them, each pair once: they may refer to each other in circles, and as deep as a file is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from moldau.schemas.model import Incompatibility
from moldau.schemas.protobuf.changes import INCOMPATIBLE, Difference, Kind
from moldau.schemas.protobuf.types import (
    SCALAR_KINDS,
    STRING_OR_BYTES,
    Declared,
    Shape,
    Types,
    oneof_of,
    type_name,
)

Path = tuple[str, ...]
Pair = tuple[str, str]


def incompatibilities(writer: FileDescriptorSet, reader: FileDescriptorSet) -> list[Incompatibility]:
    """Why a reader's schema cannot read what a writer's wrote."""
    return [_incompatibility(found) for found in differences(writer, reader) if found.kind in INCOMPATIBLE]


def _incompatibility(found: Difference) -> Incompatibility:
    """Which of the two is the new schema is not known here, so their names stay open."""
    facts = {"path": found.path, "before": found.before, "after": found.after}
    words = INCOMPATIBLE[found.kind].format(**facts, reader="{reader}", writer="{writer}")
    return Incompatibility(str(found.kind), found.path, words)


def differences(original: FileDescriptorSet, update: FileDescriptorSet) -> list[Difference]:
    comparison = _Comparison(Types(original), Types(update))
    comparison.files(original.file[-1], update.file[-1])
    return comparison.result()


@dataclass(frozen=True, slots=True)
class _Referred:
    """A field of a message from another file: changed if the messages turn out to be incompatible."""

    pair: Pair
    change: Difference


class _Comparison:
    def __init__(self, original: Types, update: Types) -> None:
        self._original, self._update = original, update
        self._found: list[Difference | _Referred] = []
        self._of_pairs: dict[Pair, list[Difference | _Referred]] = {}
        self._waiting: list[Pair] = []

    def result(self) -> list[Difference]:
        own = self._found
        while self._waiting:
            pair = self._waiting.pop()
            self._found = self._of_pairs[pair]
            before, after = self._original.messages[pair[0]], self._update.messages[pair[1]]
            self._message(before.message, after.message, tuple(before.local_name.split(".")))
        changed = self._changed_pairs()
        return [
            found if isinstance(found, Difference) else found.change
            for entries in (own, *self._of_pairs.values())
            for found in entries
            if isinstance(found, Difference) or found.pair in changed
        ]

    def _changed_pairs(self) -> set[Pair]:
        """Those with an incompatible difference, and those with a field of such a pair."""
        users: dict[Pair, list[Pair]] = {}
        changed: set[Pair] = set()
        for pair, entries in self._of_pairs.items():
            for found in entries:
                if isinstance(found, _Referred):
                    users.setdefault(found.pair, []).append(pair)
                elif found.kind in INCOMPATIBLE:
                    changed.add(pair)
        spreading = list(changed)
        while spreading:
            for user in users.get(spreading.pop(), ()):
                if user not in changed:
                    changed.add(user)
                    spreading.append(user)
        return changed

    def _add(self, kind: Kind, path: Iterable[str], before: object = "", after: object = "") -> None:
        self._found.append(Difference(kind, "#/" + "/".join(path), str(before), str(after)))

    def files(self, original: FileDescriptorProto, update: FileDescriptorProto) -> None:
        if original.package != update.package:
            self._add(Kind.PACKAGE_CHANGED, (), original.package or "none", update.package or "none")
        self._messages(_declared(original.message_type), _declared(update.message_type), ())
        self._enums(original.enum_type, update.enum_type, ())

    def _messages(self, original: Sequence[DescriptorProto], update: Sequence[DescriptorProto], path: Path) -> None:
        before = {message.name: (index, message) for index, message in enumerate(original)}
        after = {message.name: (index, message) for index, message in enumerate(update)}
        for name in {**before, **after}:
            place = (*path, name)
            if name not in after:
                self._add(Kind.MESSAGE_REMOVED, place)
            elif name not in before:
                self._add(Kind.MESSAGE_ADDED, place)
            else:
                self._message(before[name][1], after[name][1], place)
                if before[name][0] != after[name][0]:
                    self._add(Kind.MESSAGE_MOVED, place)

    def _enums(
        self, original: Sequence[EnumDescriptorProto], update: Sequence[EnumDescriptorProto], path: Path
    ) -> None:
        before, after = ({enum.name: enum for enum in enums} for enums in (original, update))
        for name in {**before, **after}:
            if name not in after:
                self._add(Kind.ENUM_REMOVED, (*path, name))
            elif name not in before:
                self._add(Kind.ENUM_ADDED, (*path, name))
            else:
                self._constants(before[name], after[name], (*path, name))

    def _constants(self, original: EnumDescriptorProto, update: EnumDescriptorProto, path: Path) -> None:
        before, after = ({value.number: value.name for value in enum.value} for enum in (original, update))
        for number in sorted({**before, **after}):
            place = (*path, str(number))
            if number not in after:
                self._add(Kind.ENUM_CONST_REMOVED, place)
            elif number not in before:
                self._add(Kind.ENUM_CONST_ADDED, place)
            elif before[number] != after[number]:
                self._add(Kind.ENUM_CONST_CHANGED, place, before[number], after[number])

    def _message(self, original: DescriptorProto, update: DescriptorProto, path: Path) -> None:
        before, after = _Fields(original), _Fields(update)
        self._oneofs(before, after, path)
        for number in sorted({**before.by_number, **after.by_number}):
            if number not in after.by_number:
                self._removed(before, after, number, path)
            elif number not in before.by_number:
                self._field_added(after, number, path)
            else:
                self._field_kept(before, after, number, path)
        self._messages(_declared(original.nested_type), _declared(update.nested_type), path)
        self._enums(original.enum_type, update.enum_type, path)

    def _oneofs(self, before: _Fields, after: _Fields, path: Path) -> None:
        for name, members in after.oneofs.items():
            kept = [number for number in members if number in before.by_number]
            single = [number for number in kept if number not in before.oneof_of]
            # Fields of one oneof excluded each other before; any other two were independent.
            origins = {before.oneof_of.get(number, number) for number in kept}
            if len(origins) > 1:
                several = len(single) > 1
                kind = Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF if several else Kind.FIELD_MOVED_TO_EXISTING_ONEOF
                self._add(kind, (*path, name))
        for name in sorted({**before.oneofs, **after.oneofs}):
            if name not in after.oneofs:
                self._add(Kind.ONEOF_REMOVED, (*path, name))
            elif name not in before.oneofs:
                self._add(Kind.ONEOF_ADDED, (*path, name))

    def _removed(self, before: _Fields, after: _Fields, number: int, path: Path) -> None:
        oneof = before.oneof_of.get(number)
        if oneof is None:
            required = before.by_number[number].label == FieldDescriptorProto.LABEL_REQUIRED
            self._add(Kind.REQUIRED_FIELD_REMOVED if required else Kind.FIELD_REMOVED, (*path, str(number)))
        elif oneof in after.oneofs or any(member in after.by_number for member in before.oneofs[oneof]):
            self._add(Kind.ONEOF_FIELD_REMOVED, (*path, oneof, str(number)))
        # else the whole oneof is gone, which is told as such and compatible

    def _field_added(self, after: _Fields, number: int, path: Path) -> None:
        oneof = after.oneof_of.get(number)
        if oneof is not None:
            self._add(Kind.ONEOF_FIELD_ADDED, (*path, oneof, str(number)))
            return
        required = after.by_number[number].label == FieldDescriptorProto.LABEL_REQUIRED
        self._add(Kind.REQUIRED_FIELD_ADDED if required else Kind.FIELD_ADDED, (*path, str(number)))

    def _field_kept(self, before: _Fields, after: _Fields, number: int, path: Path) -> None:
        oneof = after.oneof_of.get(number)
        if number in before.oneof_of and oneof is None:
            self._add(Kind.ONEOF_FIELD_MOVED_TO_TOP_LEVEL, (*path, str(number)))
        place = (*path, str(number)) if oneof is None else (*path, oneof, str(number))
        original, update = before.by_number[number], after.by_number[number]
        if original.name != update.name:
            self._add(Kind.FIELD_NAME_CHANGED, place, original.name, update.name)
        self._type(original, update, place, labels=(self._original.label(original), self._update.label(update)))

    def _type(self, original: Any, update: Any, path: Path, labels: tuple[str | None, str | None]) -> None:
        shapes = self._original.shape(original), self._update.shape(update)
        if shapes[0] is not shapes[1]:
            self._add(Kind.FIELD_KIND_CHANGED, path, shapes[0].value, shapes[1].value)
        elif shapes[0] is Shape.SCALAR:
            self._scalar(original, update, path, labels)
        elif shapes[0] is Shape.MAP:
            entries = (self._original.messages[original.type_name], self._update.messages[update.type_name])
            for before, after in zip(*(entry.message.field for entry in entries), strict=True):
                self._type(before, after, path, labels=(None, None))
        else:
            self._named(original, update, path)

    def _scalar(self, original: Any, update: Any, path: Path, labels: tuple[str | None, str | None]) -> None:
        kind = SCALAR_KINDS[original.type]
        if kind != SCALAR_KINDS[update.type]:
            self._add(Kind.FIELD_SCALAR_KIND_CHANGED, path, type_name(original), type_name(update))
        elif None not in labels and labels[0] != labels[1]:
            text = kind == STRING_OR_BYTES
            change = Kind.FIELD_STRING_OR_BYTES_LABEL_CHANGED if text else Kind.FIELD_NUMERIC_LABEL_CHANGED
            self._add(change, path, labels[0], labels[1])

    def _named(self, original: Any, update: Any, path: Path) -> None:
        before, after = self._original.messages[original.type_name], self._update.messages[update.type_name]
        if before.local_name != after.local_name:
            self._add(Kind.FIELD_NAMED_TYPE_CHANGED, path, before.name, after.name)
        elif not (before.own and after.own):
            self._refer(before, after, path)

    def _refer(self, before: Declared, after: Declared, path: Path) -> None:
        pair = (f".{before.name}", f".{after.name}")
        if pair not in self._of_pairs:
            self._of_pairs[pair] = []
            self._waiting.append(pair)
        change = Difference(Kind.FIELD_NAMED_TYPE_CHANGED, "#/" + "/".join(path), before.name, after.name)
        self._found.append(_Referred(pair, change))


class _Fields:
    """A message's fields by number, and those of each oneof."""

    def __init__(self, message: DescriptorProto) -> None:
        self.by_number = {field.number: field for field in message.field}
        self.oneof_of: dict[int, str] = {}
        self.oneofs: dict[str, list[int]] = {}
        for field in message.field:
            oneof = oneof_of(message, field)
            if oneof is not None:
                self.oneof_of[field.number] = oneof
                self.oneofs.setdefault(oneof, []).append(field.number)


def _declared(messages: Iterable[DescriptorProto]) -> list[DescriptorProto]:
    return [message for message in messages if not message.options.map_entry]
