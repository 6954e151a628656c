"""Records as `moldau produce` sends them with a registry: keys and values in JSON become bytes by a schema."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.records.json import OutgoingRecord, Written
from moldau.cli.records.schemas.connecting import Registry, open_registry, told
from moldau.cli.records.schemas.options import KEY, VALUE
from moldau.schemas.framing import header_name
from moldau.schemas.json_text import read_value
from moldau.schemas.model import InvalidSchema, InvalidValue, Json, Reference, SchemaType
from moldau.schemas.registry_client import SchemaText, StoredSchema
from moldau.schemas.subjects import DEFAULT_CONTEXT, QualifiedSubject, SubjectNameStrategy
from moldau.schemas.values import ValueWriter, Writing

ENDINGS = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON, ".proto": SchemaType.PROTOBUF}
LATEST = "latest"
ID = re.compile(r"id:([0-9]{1,10})")
VERSION = re.compile(r"(?P<subject>.+):(?P<version>[0-9]{1,10}|latest)")
EXPECTED = "expected a file, latest, id:N or SUBJECT:VERSION"


@dataclass(frozen=True, slots=True)
class Target:
    """By what a key or value is written."""

    schema: StoredSchema
    message: str | None = None
    is_in_header: bool = False


class RecordEncoder:
    """`open` asks the registry, before the first record; until then only the command line was looked at."""

    def __init__(self, options: Namespace) -> None:
        registry = open_registry(options)
        writing = chosen_writing(options, registry)
        self._options = options
        self._registry = Registry(registry.client, writing)
        self._in_header = ValueWriter(registry.client, replace(writing, ids_in_headers=True))
        self._before_bytes = ValueWriter(registry.client, replace(writing, ids_in_headers=False))
        self._texts = {part: schema_text(options, part) for part in (KEY, VALUE)}
        self._targets: dict[str, Target] = {}
        self._by_line: dict[tuple[str, str, str | None], Target] = {}

    def open(self) -> None:
        for part in (KEY, VALUE):
            said = getattr(self._options, f"{part}_schema")
            if said is None:
                continue
            try:
                with told():
                    schema = self._chosen(part, said)
            except (InvalidSchema, InvalidValue) as wrong:
                raise UsageError(f"--{part}-schema {said}: {' '.join(str(wrong).split())}") from None
            message = self._options.message if part == VALUE else self._options.key_message
            self._targets[part] = Target(schema, message, self._registry.writing.ids_in_headers)

    def close(self) -> None:
        self._registry.client.close()

    def _chosen(self, part: str, said: str) -> StoredSchema:
        text, client = self._texts[part], self._registry.client
        if text is not None or said == LATEST:
            return self._before_bytes.schema(self._options.topic, part == KEY, text)
        if (by_id := ID.fullmatch(said)) is not None:
            return self._by_id(int(by_id[1]))
        named = VERSION.fullmatch(said)
        assert named is not None, "schema_text looked at it"
        version = named["version"]
        return client.version(named["subject"], version if version == LATEST else int(version))

    def _by_id(self, id_: int) -> StoredSchema:
        context = self._registry.writing.context
        return self._registry.client.by_id(
            id_, None if context == DEFAULT_CONTEXT else str(QualifiedSubject(context, ""))
        )

    def from_text(self, record: OutgoingRecord) -> OutgoingRecord:
        """Of a line, whose key and value are JSON where a schema is chosen. Raises CommandFailed."""
        for part, target in self._targets.items():
            content = getattr(record, part)
            if content is not None:
                try:
                    value = read_value(content)
                except InvalidValue as wrong:
                    raise CommandFailed(f"{part}: {wrong}") from None
                written = self._written(part, value, target)
                changed: dict[str, Any] = {part: written.content, "headers": [*record.headers, *written.headers]}
                record = replace(record, **changed)
        return record

    def from_json(self, part: str, content: Any, named: Any) -> Written | None:
        """Of a field of json input, beside which stands the schema that it `named`; None if it has none.

        Raises ValueError for what names no schema and CommandFailed.
        """
        target = self._targets.get(part)
        if target is None and named is None:
            return None
        if target is None:
            # A null that a schema wrote is a value of it; any other is none.
            return self._written(part, content, self._named(part, named), writes_null=True)
        return self._written(part, content, target)

    def _written(self, part: str, value: Json, target: Target, *, writes_null: bool = False) -> Written:
        header = header_name(part == KEY)
        if value is None and not writes_null:
            return Written(None, [], header)
        writer = self._in_header if target.is_in_header else self._before_bytes
        try:
            with told():
                content, headers = writer.write_by(target.schema, part == KEY, value, message=target.message)
        except (InvalidValue, InvalidSchema) as wrong:
            raise CommandFailed(f"{part}: {' '.join(str(wrong).split())}") from None
        return Written(content, [*headers], header)

    def _named(self, part: str, named: Any) -> Target:
        match named:
            case {"id": int(id_)} if not isinstance(id_, bool) and "guid" not in named:
                which = str(id_)
            case {"guid": str(which)} if "id" not in named:
                pass
            case _:
                raise ValueError(f'{part}_schema: expected an object such as {{"id": 7}} or {{"guid": "..."}}, or null')
        message = named.get("message")
        if message is not None and not isinstance(message, str):
            raise ValueError(f"{part}_schema: message: expected the name of one")
        found = self._by_line.get((part, which, message))
        if found is None:
            found = self._by_line[part, which, message] = self._found(part, named, message)
        return found

    def _found(self, part: str, named: Any, message: str | None) -> Target:
        try:
            guid = UUID(named["guid"]) if "guid" in named else None
        except ValueError:
            raise ValueError(f"{part}_schema: {named['guid']!r} is no GUID") from None
        try:
            with told():
                schema = self._by_id(named["id"]) if guid is None else self._registry.client.by_guid(guid)
        except CommandFailed as refused:
            raise CommandFailed(f"{part}_schema: {refused}") from None
        return Target(schema, message, is_in_header=guid is not None or self._registry.writing.ids_in_headers)


def chosen_writing(options: Namespace, registry: Registry) -> Writing:
    """As the properties say, and more so the options."""
    writing = registry.writing
    if options.no_register:
        writing = replace(writing, auto_register=False)
    if options.header_ids:
        writing = replace(writing, ids_in_headers=True)
    if options.subject_strategy is not None:
        writing = replace(writing, value_strategy=SubjectNameStrategy.named(options.subject_strategy))
    return writing


def schema_text(options: Namespace, part: str) -> SchemaText | None:
    """Of the file that an option names; None if it names none. Raises UsageError for what it can't be."""
    said = getattr(options, f"{part}_schema")
    if said is None or said == LATEST or ID.fullmatch(said):
        return None
    path = Path(said)
    if not path.exists() and path.suffix.lower() not in ENDINGS:
        if VERSION.fullmatch(said):
            return None
        raise UsageError(f"--{part}-schema: there is no file {said!r}; {EXPECTED}")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"--{part}-schema: cannot read {said}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--{part}-schema: cannot read {said}: it is no text in UTF-8") from None
    if options.schema_type is None and path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--{part}-schema: {said} has none of the endings {', '.join(ENDINGS)}; give --schema-type")
    kind = SchemaType(options.schema_type.upper()) if options.schema_type else ENDINGS[path.suffix.lower()]
    refers = part == VALUE or options.value_schema is None
    references = tuple(Reference(*each) for each in options.schema_reference) if refers else ()
    return SchemaText(kind, text, references)
