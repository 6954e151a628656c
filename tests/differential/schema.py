"""Messages as plain dictionaries, encoded and decoded by Apache Kafka's own schema files.

The differential tests must not trust Moldau's codec, for a mistake in it could hide itself. This one reads the JSON
inside the kafka-clients jar and walks it, slowly and simply; names are Kafka's in snake_case.
"""

from __future__ import annotations

import functools
import json
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

from tests import apache_kafka

Fields = dict[str, Any]

NUMBERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
ZERO_UUID = bytes(16)


@functools.cache
def schemas() -> Mapping[str, Any]:
    """Every request and response schema of the jar, by message name (`ProduceRequest`)."""
    with zipfile.ZipFile(apache_kafka.clients_jar()) as jar:
        names = [name for name in jar.namelist() if re.fullmatch(r"common/message/\w+(Request|Response)\.json", name)]
        loaded = [json.loads(COMMENT.sub("", jar.read(name).decode())) for name in names]
    for schema in loaded:
        shared = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
        spell_out([*schema.get("fields", ()), *(field for fields in shared.values() for field in fields)], shared)
    return {schema["name"]: schema for schema in loaded}


def spell_out(fields: list[Any], shared: Mapping[str, Any]) -> None:
    """Give the fields of structs that a schema defines once and uses in several places."""
    for field in fields:
        kind = field["type"].removeprefix("[]")
        if kind in shared:
            field["fields"] = shared[kind]
        elif "fields" in field:
            spell_out(field["fields"], shared)


def api_key(api: str) -> int:
    return int(schemas()[api + "Request"]["apiKey"])


def versions(api: str) -> range:
    """The versions of an API that a release of Apache Kafka speaks."""
    schema = schemas()[api + "Request"]
    span = span_of(schema["validVersions"])
    return range(span.start, span.stop - bool(schema.get("latestVersionUnstable")))


@functools.cache
def span_of(text: str) -> range:
    if text == "none":
        return range(0)
    low, dash, high = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), 1 << 15)
    return range(int(low), int(high if dash else low) + 1)


def is_flexible(message: str, version: int) -> bool:
    return version in span_of(schemas()[message]["flexibleVersions"])


@functools.cache
def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def encode(message: str, version: int, values: Mapping[str, Any]) -> bytes:
    out = bytearray()
    Writer(out, version, flexible=is_flexible(message, version)).fields(schemas()[message]["fields"], values)
    return bytes(out)


def decode(message: str, version: int, data: bytes) -> Fields:
    reader = Reader(data, version, flexible=is_flexible(message, version))
    decoded = reader.fields(schemas()[message]["fields"])
    if reader.at != len(data):
        raise ValueError(f"{message} v{version}: {len(data) - reader.at} bytes follow the message")
    return decoded


def default_of(field: Mapping[str, Any]) -> Any:
    kind, default = field["type"], field.get("default", "")
    if default == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind in NUMBERS:
        return float(default or 0) if kind == "float64" else int(str(default) or "0", 0)
    plain: Mapping[str, Any] = {
        "bool": str(default) == "true",
        "string": default,
        "uuid": ZERO_UUID,
        "bytes": b"",
        "records": None,
    }
    return plain.get(kind, {})


def is_nullable_struct(field: Mapping[str, Any], version: int) -> bool:
    return not field["type"].startswith("[]") and version in span_of(field.get("nullableVersions", "none"))


class Writer:
    def __init__(self, out: bytearray, version: int, *, flexible: bool) -> None:
        self.out, self.version, self.flexible = out, version, flexible

    def fields(self, fields: list[Any], values: Mapping[str, Any]) -> None:
        unknown = set(values) - {snake(field["name"]) for field in fields}
        assert not unknown, f"no such fields: {unknown}"
        tagged = []
        for field in fields:
            if self.version not in span_of(field["versions"]):
                continue
            value = values.get(snake(field["name"]), default_of(field))
            if self.version in span_of(field.get("taggedVersions", "none")):
                if value != default_of(field):
                    tagged.append((field["tag"], field, value))
            else:
                self.value(field, field["type"], value)
        if self.flexible:
            self.tags(tagged)

    def tags(self, tagged: list[tuple[int, Any, Any]]) -> None:
        self.varint(len(tagged))
        for tag, field, value in sorted(tagged, key=lambda one: one[0]):
            body = bytearray()
            Writer(body, self.version, flexible=True).value(field, field["type"], value)
            self.varint(tag)
            self.varint(len(body))
            self.out += body

    def value(self, field: Mapping[str, Any], kind: str, value: Any) -> None:
        if kind.startswith("[]"):
            self.length(None if value is None else len(value), wide=True)
            for one in value or []:
                self.value(field, kind[2:], one)
        elif kind in NUMBERS:
            self.out += struct.pack(NUMBERS[kind], value)
        elif kind == "bool":
            self.out.append(value)
        elif kind == "uuid":
            self.out += value
        elif kind in ("string", "bytes", "records"):
            body = value.encode() if isinstance(value, str) else value
            self.length(None if body is None else len(body), wide=kind != "string")
            self.out += body or b""
        else:
            self.struct(field, value)

    def struct(self, field: Mapping[str, Any], value: Any) -> None:
        if is_nullable_struct(field, self.version):
            self.out += b"\xff" if value is None else b"\x01"
        if value is not None:
            self.fields(field["fields"], value)

    def length(self, length: int | None, *, wide: bool) -> None:
        if self.flexible:
            self.varint(0 if length is None else length + 1)
        else:
            self.out += struct.pack(">i" if wide else ">h", -1 if length is None else length)

    def varint(self, value: int) -> None:
        while value > 0x7F:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)


class Reader:
    def __init__(self, data: bytes, version: int, *, flexible: bool) -> None:
        self.data, self.version, self.flexible, self.at = data, version, flexible, 0

    def fields(self, fields: list[Any]) -> Fields:
        present = [field for field in fields if self.version in span_of(field["versions"])]
        tagged = [field for field in present if self.version in span_of(field.get("taggedVersions", "none"))]
        decoded = {snake(field["name"]): self.value(field, field["type"]) for field in present if field not in tagged}
        decoded |= {snake(field["name"]): default_of(field) for field in tagged}
        if self.flexible:
            self.tags({field["tag"]: field for field in tagged}, decoded)
        return decoded

    def tags(self, known: Mapping[int, Any], into: Fields) -> None:
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            if tag in known:
                into[snake(known[tag]["name"])] = self.value(known[tag], known[tag]["type"])
            else:
                into[f"unknown tag {tag}"] = self.take(size)

    def value(self, field: Mapping[str, Any], kind: str) -> Any:
        if kind.startswith("[]"):
            count = self.length(wide=True)
            return None if count is None else [self.value(field, kind[2:]) for _ in range(count)]
        if kind in NUMBERS:
            return struct.unpack(NUMBERS[kind], self.take(struct.calcsize(NUMBERS[kind])))[0]
        if kind == "bool":
            return self.take(1) != b"\0"
        if kind == "uuid":
            return self.take(16)
        if kind in ("string", "bytes", "records"):
            size = self.length(wide=kind != "string")
            body = None if size is None else self.take(size)
            return body.decode() if kind == "string" and body is not None else body
        if is_nullable_struct(field, self.version) and self.take(1) == b"\xff":
            return None
        return self.fields(field["fields"])

    def length(self, *, wide: bool) -> int | None:
        if self.flexible:
            length = self.varint() - 1
        else:
            length = struct.unpack(">i" if wide else ">h", self.take(4 if wide else 2))[0]
        return None if length < 0 else length

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise ValueError(f"the message ends at {len(self.data)}, but {size} bytes are due at {self.at}")
        self.at += size
        return taken
