"""Messages, enums and fields in a schema's text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from moldau.schemas.protobuf.options import (
    Option,
    Text,
    bracketed,
    compact,
    indented,
    print_float,
    print_option,
    quoted,
    read_brackets,
    spaced,
)
from moldau.schemas.protobuf.source import Path
from moldau.schemas.protobuf.style import Style, option_brackets, option_statements

RANGE_END = 536_870_912  # of field numbers, exclusive
ENUM_RANGE_END = 2_147_483_647  # of constants, inclusive
# Numbers of fields in descriptor.proto, of which the compiler's paths are made.
FIELDS, NESTED, ENUMS, RANGES, EXTENSIONS, OPTIONS, ONEOFS = 2, 3, 4, 5, 6, 7, 8
RESERVED = 9  # numbers; names are the next field, as in an enum
FIELD_EXTENDEE, FIELD_LABEL, FIELD_TYPE, FIELD_OPTIONS = 2, 4, 6, 8
ONEOF_OPTIONS = 2
VALUES, ENUM_OPTIONS, ENUM_RESERVED = 2, 3, 4
VALUE_OPTIONS = 3

Numbered = Sequence[tuple[int, Any]]


def message(declared: Any, style: Style, path: Path, scope: str) -> str:
    return f"message {declared.name} {body(declared, style, path, f'{scope}.{declared.name}')}"


def body(declared: Any, style: Style, path: Path, scope: str) -> str:
    printer = _Body(declared, style, path, scope)
    return f"{{{''.join(f'{chr(10)}{indented(section)}' for section in printer.sections() if section)}}}\n"


class _Body:
    """What stands between a message's braces, section by section."""

    def __init__(self, declared: Any, style: Style, path: Path, scope: str) -> None:
        self._declared, self._style, self._path, self._scope = declared, style, path, scope
        names = {f"{scope}.{nested.name}": index for index, nested in enumerate(declared.nested_type)}
        entries = {name for name, index in names.items() if declared.nested_type[index].options.map_entry}
        self._entries = {name: names[name] for name in entries}
        groups = {
            field.type_name
            for field in (*declared.field, *declared.extension)
            if field.type == FieldDescriptorProto.TYPE_GROUP
        }
        self._groups = {name: names[name] for name in groups if name in names}
        self._left = [index for name, index in names.items() if name not in entries and name not in groups]

    def sections(self) -> Iterator[str]:
        declared, style, path = self._declared, self._style, self._path
        yield _reserved(declared.reserved_range, declared.reserved_name, style, (*path, RESERVED), RANGE_END)
        yield option_statements(declared.options, style, (*path, OPTIONS))
        fields = self._in_order(list(enumerate(declared.field)))
        apart = [(i, f) for i, f in fields if not _in_oneof(f)]
        yield "".join(self._field(i, field) for i, field in apart if field.type != FieldDescriptorProto.TYPE_GROUP)
        yield "".join(self._oneofs(fields))
        yield "".join(self._field(i, field) for i, field in apart if field.type == FieldDescriptorProto.TYPE_GROUP)
        yield _extension_ranges(declared.extension_range, style, (*path, RANGES))
        groups = tuple(self._group(extension) or "" for extension in declared.extension)
        yield "".join(extends(declared.extension, style, (*path, EXTENSIONS), groups))
        types = [self._nested(index) for index in self._left]
        yield "".join(types + [enum(e, style, (*path, ENUMS, index)) for index, e in enumerate(declared.enum_type)])

    def _in_order(self, fields: list[tuple[int, Any]]) -> Numbered:
        return sorted(fields, key=lambda field: field[1].number) if self._style.in_order else fields

    def _oneofs(self, fields: Numbered) -> Iterator[str]:
        members: list[list[tuple[int, Any]]] = [[] for _ in self._declared.oneof_decl]
        for index, declared in fields:
            if _in_oneof(declared):
                members[declared.oneof_index].append((index, declared))
        oneofs = [(number, some) for number, some in enumerate(members) if some]
        if self._style.in_order:
            oneofs.sort(key=lambda some: some[1][0][1].number)
        for number, some in oneofs:
            oneof = self._declared.oneof_decl[number]
            path = (*self._path, ONEOFS, number, ONEOF_OPTIONS)
            sections = (
                option_statements(oneof.options, self._style, path),
                "".join(self._field(index, field) for index, field in some),
            )
            body = "".join(f"\n{indented(section)}" for section in sections if section)
            yield f"oneof {oneof.name} {{{body}}}\n"

    def _field(self, index: int, declared: Any) -> str:
        path = (*self._path, FIELDS, index)
        entry = self._entries.get(declared.type_name)
        if entry is not None:
            before = self._before(entry)
            return before + field(declared, self._style, path, entry=self._declared.nested_type[entry])
        return field(declared, self._style, path, group=self._group(declared))

    def _group(self, declared: Any) -> str | None:
        if declared.type != FieldDescriptorProto.TYPE_GROUP:
            return None
        # Each once: in a hostile descriptor two fields on each level may have one group.
        index = self._groups.pop(declared.type_name, None)
        if index is None:
            return None
        # A group's body is a message's, noted at the place of the message.
        return body(self._declared.nested_type[index], self._style, (*self._path, NESTED, index), declared.type_name)

    def _before(self, entry: int) -> str:
        """Messages before a map's entry stay there: payloads name messages by their place among all of them."""
        if self._style.in_order:
            return ""
        first = [index for index in self._left if index < entry]
        self._left = [index for index in self._left if index > entry]
        return "".join(self._nested(index) for index in first)

    def _nested(self, index: int) -> str:
        return message(self._declared.nested_type[index], self._style, (*self._path, NESTED, index), self._scope)


def _in_oneof(declared: Any) -> bool:
    return declared.HasField("oneof_index") and not declared.proto3_optional


def field(declared: Any, style: Style, path: Path, entry: Any = None, group: str | None = None) -> str:
    label = "" if entry is not None else _label(declared, style, path)
    kind = _map_type(entry, style, path) if entry is not None else _type(declared, style, path)
    options = option_brackets(declared.options, style, (*path, FIELD_OPTIONS), tuple(_unlisted(declared)))
    if declared.type == FieldDescriptorProto.TYPE_GROUP:
        if group is None:
            raise ValueError(f"the group {declared.type_name} has no message of its own")
        name = declared.type_name.rpartition(".")[2]
        return f"{label}group {name} = {declared.number}{options} {group}"
    return f"{label}{kind} {declared.name} = {declared.number}{options};\n"


def _label(declared: Any, style: Style, path: Path) -> str:
    if style.source is not None:
        written = style.written(*path, FIELD_LABEL)
        return f"{written} " if written else ""
    if declared.label == FieldDescriptorProto.LABEL_REPEATED:
        return "repeated "
    if declared.label == FieldDescriptorProto.LABEL_REQUIRED:
        return "required "
    plain = style.syntax in ("proto3", "editions") or declared.HasField("oneof_index")
    return "optional " if declared.proto3_optional or not plain else ""


def _type(declared: Any, style: Style, path: Path) -> str:
    if not declared.type_name:
        return str(FieldDescriptorProto.Type.Name(declared.type)).removeprefix("TYPE_").lower()
    return compact(style.written(*path, FIELD_TYPE) or declared.type_name)


def _map_type(entry: Any, style: Style, path: Path) -> str:
    written = style.written(*path, FIELD_TYPE)
    if written is not None:
        return compact(written).replace(",", ", ", 1)
    key, value = (_type(part, Style(None, style.in_order, style.syntax), path) for part in entry.field)
    return f"map<{key}, {value}>"


def _unlisted(declared: Any) -> Iterator[Option]:
    """What reads as an option and is a part of the field itself."""
    if declared.HasField("default_value"):
        yield Option("default", _default(declared))
    if declared.HasField("json_name") and declared.json_name != _json_name(declared.name):
        yield Option("json_name", Text(declared.json_name.encode()))


def _default(declared: Any) -> Text | str:
    value = str(declared.default_value)
    if declared.type == FieldDescriptorProto.TYPE_STRING:
        return Text(value.encode())
    if declared.type == FieldDescriptorProto.TYPE_BYTES:
        return f'"{value}"'  # escaped already
    if declared.type in (FieldDescriptorProto.TYPE_FLOAT, FieldDescriptorProto.TYPE_DOUBLE):
        return print_float(float(value), single=declared.type == FieldDescriptorProto.TYPE_FLOAT)
    return value


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def enum(declared: Any, style: Style, path: Path) -> str:
    reserved = _reserved(
        declared.reserved_range, declared.reserved_name, style, (*path, ENUM_RESERVED), ENUM_RANGE_END, inclusive=True
    )
    statements = option_statements(declared.options, style, (*path, ENUM_OPTIONS))
    values = list(enumerate(declared.value))
    if style.in_order:
        # The first number stays first: it is the default.
        default = declared.value[0].number
        values.sort(key=lambda value: (value[1].number != default, value[1].number, value[1].name))
    constants = "".join(
        f"{value.name} = {value.number}"
        f"{option_brackets(value.options, style, (*path, VALUES, index, VALUE_OPTIONS))};\n"
        for index, value in values
    )
    return f"enum {declared.name} {{\n{indented(reserved + statements + constants)}}}\n"


def extends(declared: Sequence[Any], style: Style, path: Path, groups: tuple[str, ...]) -> Iterator[str]:
    """`extend Type { ... }`, each statement of the source or all fields of one type together."""
    for block in _extend_blocks(declared, style, path):
        first = block[0]
        name = compact(style.written(*path, first, FIELD_EXTENDEE) or declared[first].extendee)
        if style.in_order:
            block = sorted(block, key=lambda index: declared[index].number)
        fields = "".join(
            field(declared[index], style, (*path, index), group=(groups[index] or None) if groups else None)
            for index in block
        )
        yield f"extend {name} {{\n{indented(fields)}}}\n"


def _extend_blocks(declared: Sequence[Any], style: Style, path: Path) -> list[list[int]]:
    if style.source is not None:
        return style.source.group(path, len(declared)) if declared else []
    by_type: dict[str, list[int]] = {}
    for index, extension in enumerate(declared):
        by_type.setdefault(extension.extendee, []).append(index)
    return list(by_type.values())


def _reserved(
    ranges: Sequence[Any], names: Sequence[str], style: Style, path: Path, end: int, *, inclusive: bool = False
) -> str:
    if style.source is not None:
        names_path = (*path[:-1], path[-1] + 1)
        return "".join(f"{spaced(statement)};\n" for statement in style.source.statements(path, names_path))
    shown = [
        _range(one.start, one.end if inclusive else one.end - 1, end if inclusive else end - 1)
        for one in sorted(ranges, key=lambda one: one.start)
    ]
    quote = style.syntax != "editions"
    shown += [quoted(name.encode()) if quote else name for name in (sorted(names) if style.in_order else names)]
    return "".join(f"reserved {one};\n" for one in shown)


def _range(start: int, end: int, last: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end >= last else end}"


def _extension_ranges(ranges: Sequence[Any], style: Style, path: Path) -> str:
    if style.source is not None:
        return "".join(_extension_statement(statement) for statement in style.source.statements(path))
    return "".join(
        f"extensions {_range(one.start, one.end - 1, RANGE_END - 1)}{option_brackets(one.options, style, ())};\n"
        for one in sorted(ranges, key=lambda one: one.start)
    )


def _extension_statement(statement: str) -> str:
    numbers, bracket, options = statement.partition("[")
    if not bracket:
        return f"{spaced(numbers)};\n"
    found = [print_option(option) for option in read_brackets("[" + options)]
    return f"{spaced(numbers)} {bracketed(found)};\n"
