"""Records as `moldau consume` shows them with a registry: what names a schema is JSON, the rest is as it is."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from moldau.cli.failures import CommandFailed
from moldau.cli.records.json import LINE_BREAKS
from moldau.cli.records.schemas.connecting import Registry, open_registry, told
from moldau.cli.records.schemas.options import BOTH, KEY, VALUE
from moldau.client.fetched import FetchedRecord
from moldau.schemas.framing import NotFramed
from moldau.schemas.model import InvalidValue, Json, SchemaType
from moldau.schemas.values import Opened, ValueReader


@dataclass(frozen=True)
class Decoded:
    """A key or value, and the schema that wrote it."""

    content: Json
    schema: dict[str, Json]

    @cached_property
    def text(self) -> bytes:
        shown = json.dumps(self.content, ensure_ascii=False, separators=(",", ":"))
        return shown.translate(LINE_BREAKS).encode()


@dataclass(frozen=True, slots=True)
class Parts:
    """None for what is shown as it is."""

    key: Decoded | None
    value: Decoded | None

    def in_text(self, record: FetchedRecord) -> FetchedRecord:
        changed = {name: part.text for name, part in ((KEY, self.key), (VALUE, self.value)) if part is not None}
        return replace(record, **changed) if changed else record

    def in_json(self) -> dict[str, Json]:
        """Fields in the place of a record's own, and the schemas."""
        fields: dict[str, Json] = {f"{KEY}_schema": None, f"{VALUE}_schema": None}
        for name, part in ((KEY, self.key), (VALUE, self.value)):
            if part is not None:
                fields |= {name: part.content, f"{name}_schema": part.schema}
        return fields


class RecordDecoder:
    """Tells of the first key and the first value of each topic that can't be read, and goes on."""

    def __init__(self, registry: Registry, *, wanted: str | None, is_strict: bool) -> None:
        self._registry = registry
        self._reader = ValueReader(registry.client, context=registry.writing.context)
        self._reads_key = wanted in (None, BOTH, KEY)
        self._reads_value = wanted in (None, BOTH, VALUE)
        # Keys are text in most topics whose values have schemas: nobody wants to hear of it who did not ask for keys.
        self._expects_key = wanted is not None
        self._is_strict = is_strict
        self._told: set[tuple[str, str]] = set()
        self._last: tuple[FetchedRecord, Parts] | None = None

    def parts(self, record: FetchedRecord) -> Parts:
        """A filter and a format ask for the same record."""
        if self._last is None or self._last[0] is not record:
            with told():
                key = self._decoded(record, KEY) if self._reads_key else None
                value = self._decoded(record, VALUE) if self._reads_value else None
            self._last = record, Parts(key, value)
        return self._last[1]

    def close(self) -> None:
        self._registry.client.close()

    def in_text(self, record: FetchedRecord) -> FetchedRecord:
        return self.parts(record).in_text(record)

    def _decoded(self, record: FetchedRecord, part: str) -> Decoded | None:
        payload: bytes | None = getattr(record, part)
        if payload is None:
            return None
        headers = [(name.decode(errors="replace"), content) for name, content in record.headers]
        try:
            opened = self._reader.open(record.topic, part == KEY, payload, headers)
            return Decoded(opened.decode(), _schema(opened))
        except NotFramed as wrong:
            if part == VALUE or self._expects_key:
                self._tell(record, part, wrong)
        except InvalidValue as wrong:
            self._tell(record, part, wrong)
        return None

    def _tell(self, record: FetchedRecord, part: str, wrong: InvalidValue) -> None:
        where = f"{record.topic}-{record.partition} at offset {record.offset}: the {part}"
        reason = " ".join(str(wrong).split())
        if self._is_strict:
            raise CommandFailed(f"{where} can't be read by the registry: {reason}")
        if (record.topic, part) not in self._told:
            self._told.add((record.topic, part))
            sys.stdout.flush()
            print(
                f"moldau consume: {where} is shown as it is, as are all others of this topic that can't be read:"
                f" {reason}",
                file=sys.stderr,
                flush=True,
            )


def _schema(opened: Opened) -> dict[str, Json]:
    """What `moldau produce -i json` finds the schema by."""
    name = "guid" if isinstance(opened.id, UUID) else "id"
    id_: Json = str(opened.id) if isinstance(opened.id, UUID) else opened.id
    described: dict[str, Json] = {name: id_, "type": str(opened.schema.type)}
    if opened.schema.type is SchemaType.PROTOBUF:
        schema: Any = opened.schema
        described["message"] = schema.message_class(opened.message).DESCRIPTOR.full_name
    return described


def open_decoder(options: Namespace) -> RecordDecoder:
    return RecordDecoder(open_registry(options), wanted=options.registry_for, is_strict=options.strict)
