"""How console-consumer prints a record: Apache Kafka's formatters, under their old and new names."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

from moldau.cli.failures import UsageError, meant
from moldau.cli.kafka.console import own_code
from moldau.cli.kafka.console.deserializers import Deserializer, deserializer
from moldau.cli.kafka.console.properties import is_true
from moldau.client.fetched import FetchedRecord
from moldau.wire.crc import crc32c

Formatter = Callable[[FetchedRecord], bytes]

NEW_PACKAGE = "org.apache.kafka.tools.consumer."
OLD_PACKAGES = ("kafka.tools.", "kafka.coordinator.group.GroupMetadataManager$", "kafka.coordinator.transaction.")
REMOTE_PACKAGE = "org.apache.kafka.server.log.remote.metadata.storage.serialization."
SHARE_PACKAGE = "group.share."
SHARE_GROUP_RECORDS = range(10, 16)
NO_TIMESTAMP = -1


def formatter(name: str, properties: Mapping[str, str]) -> Formatter:
    if own_code.is_own(name):
        show = own_code.load(name, properties, option="--formatter")
        return lambda record: _encoded(show(record))
    kind = name
    for package in (NEW_PACKAGE, *OLD_PACKAGES, SHARE_PACKAGE, "TransactionLog$"):
        kind = kind.removeprefix(package)
    if kind not in KINDS:
        known = [f"{NEW_PACKAGE}{each}" for each in KINDS]
        near = meant(name, known) or f"; known are {', '.join(KINDS)}, and a formatter of your own is MODULE:NAME"
        raise UsageError(f"--formatter: unknown formatter {name!r}{near}")
    return KINDS[kind](properties)


def _encoded(shown: Any) -> bytes:
    if shown is None:  # a record that a formatter passes over
        return b""
    return shown if isinstance(shown, bytes) else str(shown).encode()


class DefaultFormatter:
    """The columns that are asked for, a separator between them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._null = properties.get("null.literal", "null").encode()
        self._between = properties.get("key.separator", "\t").encode()
        self._end = properties.get("line.separator", "\n").encode()
        self._headers_between = properties.get("headers.separator", ",").encode()
        self._key, self._value, self._header = (
            _deserializer(properties, name)
            for name in ("key.deserializer", "value.deserializer", "headers.deserializer")
        )
        columns: list[tuple[str, Formatter]] = [
            ("timestamp", _timestamp),
            ("partition", lambda record: b"Partition:%d" % record.partition),
            ("offset", lambda record: b"Offset:%d" % record.offset),
            # Apache Kafka's tool hands neither of the two to its formatter.
            ("delivery", lambda _record: b"Delivery:NOT_PRESENT"),
            ("epoch", lambda _record: b"Epoch:NOT_PRESENT"),
            ("headers", self._headers),
            ("key", lambda record: self._shown(record.key, self._key)),
            ("value", lambda record: self._shown(record.value, self._value)),
        ]
        self._columns = [show for name, show in columns if is_true(properties, f"print.{name}", usual=name == "value")]

    def __call__(self, record: FetchedRecord) -> bytes:
        return self._between.join([show(record) for show in self._columns]) + (self._end if self._columns else b"")

    def _headers(self, record: FetchedRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_between.join(
            name + b":" + self._shown(value, self._header) for name, value in record.headers
        )

    def _shown(self, content: bytes | None, decode: Deserializer | None) -> bytes:
        """A deserializer is given the literal in place of null."""
        present = self._null if content is None else content
        return present if decode is None else decode(present)


def _deserializer(properties: Mapping[str, str], name: str) -> Deserializer | None:
    if name not in properties:
        return None
    own = {key.removeprefix(f"{name}."): value for key, value in properties.items() if key.startswith(f"{name}.")}
    return deserializer(properties[name], own, option=name)


def _timestamp(record: FetchedRecord) -> bytes:
    if record.timestamp_ms == NO_TIMESTAMP:
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (b"LogAppendTime" if record.is_append_time else b"CreateTime", record.timestamp_ms)


def _nothing(_properties: Mapping[str, str]) -> Formatter:
    return lambda _record: b""


def _logging(_properties: Mapping[str, str]) -> Formatter:
    """What it logs goes to standard error; what it prints is the value, whatever the properties say."""
    value_only = DefaultFormatter({})

    def show(record: FetchedRecord) -> bytes:
        time = "" if record.timestamp_ms == NO_TIMESTAMP else f"{_timestamp(record).decode()}, "
        key = "null " if record.key is None else f"{record.key.decode(errors='replace')}, "
        value = "null" if record.value is None else record.value.decode(errors="replace")
        print(f"INFO {time}key:{key}value:{value} ({NEW_PACKAGE}LoggingMessageFormatter)", file=sys.stderr)
        return value_only(record)

    return show


def _checksum(properties: Mapping[str, str]) -> Formatter:
    """The last that Apache Kafka had: over the time and the sizes, as batches have one checksum for all records."""
    topic = f"{properties['topic']}:" if "topic" in properties else ""

    def show(record: FetchedRecord) -> bytes:
        sizes = (-1 if content is None else len(content) for content in (record.key, record.value))
        return f"{topic}checksum:{crc32c(struct.pack('>qii', record.timestamp_ms, *sizes))}\n".encode()

    return show


def _offsets(_properties: Mapping[str, str]) -> Formatter:
    from moldau.cli.kafka.console.internal_topics import OFFSETS, decoder

    return decoder(OFFSETS)


def _groups(_properties: Mapping[str, str]) -> Formatter:
    from moldau.cli.kafka.console.internal_topics import GROUPS, decoder

    return decoder(GROUPS)


def _transactions(_properties: Mapping[str, str]) -> Formatter:
    from moldau.cli.kafka.console.internal_topics import TRANSACTIONS, decoder

    return decoder(TRANSACTIONS)


def _share_groups(_properties: Mapping[str, str]) -> Formatter:
    from moldau.cli.kafka.console.internal_topics import decoder
    from moldau.cli.kafka.dump_log.internal_topics import offsets_schemas

    return decoder({kind: schemas for kind, schemas in offsets_schemas().items() if kind in SHARE_GROUP_RECORDS})


def _share_state(_properties: Mapping[str, str]) -> Formatter:
    from moldau.cli.kafka.console.internal_topics import decoder
    from moldau.cli.kafka.dump_log.internal_topics import share_state_schemas

    return decoder(share_state_schemas())


def _remote_log(_properties: Mapping[str, str]) -> Formatter:
    from moldau.cli.kafka.dump_log.remote_log import shown

    def show(record: FetchedRecord) -> bytes:
        text = shown(memoryview(record.value or b""))
        return f"partition: {record.partition}, offset: {record.offset}, value: {text}\n".encode()

    return show


KINDS: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
    "DefaultMessageFormatter": DefaultFormatter,
    "LoggingMessageFormatter": _logging,
    "NoOpMessageFormatter": _nothing,
    "ChecksumMessageFormatter": _checksum,
    "OffsetsMessageFormatter": _offsets,
    "GroupMetadataMessageFormatter": _groups,
    "TransactionLogMessageFormatter": _transactions,
    "ShareGroupMessageFormatter": _share_groups,
    "ShareGroupStateMessageFormatter": _share_state,
    f"{REMOTE_PACKAGE}RemoteLogMetadataSerde$RemoteLogMetadataFormatter": _remote_log,
}
