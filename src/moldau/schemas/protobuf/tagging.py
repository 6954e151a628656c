"""Tags in a Protobuf schema: `tags` in the options `confluent.message_meta` and `confluent.field_meta`.

A path is names of messages inside one another, without the package, and the name of a field; that of a field's oneof
may stand before it. All that is said by several options of Confluent's is then said by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from moldau.schemas.model import InvalidSchema, ReferencedText
from moldau.schemas.protobuf.declarations import FIELD_OPTIONS, FIELDS, NESTED, OPTIONS
from moldau.schemas.protobuf.options import Option, Text, Value
from moldau.schemas.protobuf.printing import MESSAGES, print_changed
from moldau.schemas.protobuf.schema import compiled_text
from moldau.schemas.protobuf.source import Path, Source
from moldau.schemas.protobuf.style import written_brackets, written_statements
from moldau.schemas.tagging import Tagging

META_FILE = "confluent/meta.proto"
MESSAGE_META, FIELD_META = "(confluent.message_meta)", "(confluent.field_meta)"
TAGS = "tags"
Names = tuple[str, ...]


def tagged(text: str, references: Sequence[ReferencedText], taggings: Sequence[Tagging]) -> str:
    """Raises InvalidSchema for a path that leads nowhere. The text imports what declares the options, if it did not."""
    text, files = compiled_text(text, references)
    file = files.file[-1]
    source = Source(file, text)
    messages = dict(_messages(file))
    fields = {names: path for name, (path, message) in messages.items() for names, path in _fields(name, path, message)}
    changed: dict[Path, list[Option]] = {}
    for each in taggings:
        names = (*each.path.removeprefix(".").rstrip(".").split("."),)
        if names not in (messages if each.is_record else fields):
            raise each.missing()
        path = (*messages[names][0], OPTIONS) if each.is_record else (*fields[names], FIELD_OPTIONS)
        if path not in changed:
            changed[path] = (written_statements if each.is_record else written_brackets)(source, path)
        changed[path] = _tagged(changed[path], MESSAGE_META if each.is_record else FIELD_META, each)
    has_meta = any(option.name in (MESSAGE_META, FIELD_META) for options in changed.values() for option in options)
    if has_meta and META_FILE not in file.dependency:
        file.dependency.append(META_FILE)
    try:
        return print_changed(file, source, changed)
    except (ValueError, RecursionError) as wrong:
        raise InvalidSchema(f"the schema cannot be printed: {wrong}") from wrong


def _messages(file: Any) -> Iterator[tuple[Names, tuple[Path, Any]]]:
    waiting: list[tuple[Names, Path, Any]] = [((), (MESSAGES, index), message)
                                              for index, message in enumerate(file.message_type)]  # fmt: skip
    while waiting:
        outer, path, message = waiting.pop()
        names = (*outer, message.name)
        if not message.options.map_entry:
            yield names, (path, message)
            waiting += [(names, (*path, NESTED, index), nested) for index, nested in enumerate(message.nested_type)]


def _fields(names: Names, path: Path, message: Any) -> Iterator[tuple[Names, Path]]:
    for index, field in enumerate(message.field):
        yield (*names, field.name), (*path, FIELDS, index)
        if field.HasField("oneof_index") and not field.proto3_optional:
            oneof = message.oneof_decl[field.oneof_index].name
            yield (*names, oneof, field.name), (*path, FIELDS, index)


def _tagged(options: Sequence[Option], meta: str, tagging: Tagging) -> list[Option]:
    """With one option of Confluent's, where the first of them stood, or none if nothing is left of them."""
    own = [each for each in options if f"{_name(each)}.".startswith(f"{meta}.")]
    others = [each for each in options if each not in own]
    at = options.index(own[0]) if own else len(options)
    pairs: dict[str, Value] = {}
    for option in own:
        for key, value in _said(_name(option).removeprefix(meta).removeprefix("."), option.value):
            pairs[key] = [*_each(pairs[key]), *_each(value)] if key in pairs else value
    tags = tagging.of(_text(each) for each in _each(pairs.get(TAGS, [])))
    pairs[TAGS] = [Text(each.encode("utf-8", "surrogateescape")) for each in tags]
    if not tags:
        del pairs[TAGS]
    return [*others[:at], *([Option(meta, (*pairs.items(),))] if pairs else ()), *others[at:]]


def _name(option: Option) -> str:
    return option.name.replace("(.", "(", 1)


def _text(tag: Value) -> str:
    return tag.content.decode("utf-8", "surrogateescape") if isinstance(tag, Text) else str(tag)


def _said(field: str, value: Value) -> Sequence[tuple[str, Value]]:
    if field:
        return ((field, value),)
    return value if isinstance(value, tuple) else ()


def _each(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list) else [value]
