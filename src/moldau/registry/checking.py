"""Parsing and compatibility, in threads: a schema that takes seconds holds up nobody but whoever asked about it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from moldau.registry import refusals
from moldau.registry.names import context_of, in_context
from moldau.registry.records import Settings, StoredSchema
from moldau.registry.state import State
from moldau.schemas import formats
from moldau.schemas.model import InvalidSchema, ParsedSchema, Reference, ReferencedText, SchemaType
from moldau.schemas.tagging import Tagging
from moldau.web.errors import ApiError
from moldau.web.trimming import Trimming

SMALL_AT_ONCE, SMALL_WAITING_MAX = 3, 64  # whoever comes then is told to come later
LARGE_AT_ONCE, LARGE_WAITING_MAX = 1, 16  # each takes up to 100 MB and seconds, for which nobody else has to wait
PARSED_BYTES_MAX = 512 << 10  # of the texts whose parsed forms are kept: these take up to a hundred times as much
LARGE_BYTES = 64 << 10  # of a text whose parsing leaves megabytes behind
REFERENCED_MAX = 500  # of one schema, directly and through others
DEPTH_MAX = 50  # of references to references
RESERVED_PROPERTY = "confluent:reserved"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """All that a schema is parsed from."""

    type: SchemaType
    text: str
    references: tuple[ReferencedText, ...] = ()

    @property
    def size(self) -> int:
        return len(self.text) + sum(len(each.text) for each in self.references)


def source_of(state: State, schema: StoredSchema) -> Source:
    """Raises 42201."""
    if schema.type not in set(SchemaType):  # registries of others may have more of them
        raise refusals.invalid_schema(f"Invalid schema type {schema.type}")
    return Source(
        SchemaType(schema.type), schema.text, referenced(state, context_of(schema.subject), schema.references)
    )


def referenced(state: State, context: str, references: Iterable[Reference]) -> tuple[ReferencedText, ...]:
    """The texts that references lead to, each behind those that it needs itself. Raises 42201."""
    found: dict[str, ReferencedText] = {}
    _collect(state, context, references, found, DEPTH_MAX)
    return tuple(found.values())


def _collect(
    state: State, context: str, references: Iterable[Reference], found: dict[str, ReferencedText], depth: int
) -> None:
    if depth == 0:
        raise refusals.invalid_schema(f"references lead more than {DEPTH_MAX} schemas deep")
    for each in references:
        if each.name in found:
            continue
        subject = in_context(context, each.subject)
        target = state.get(subject, each.version, deleted=each.version > 0)
        if target is None:
            raise refusals.invalid_schema(
                f'No schema reference found for subject "{each.subject}" and version {each.version}'
            )
        _collect(state, context_of(subject), target.references, found, depth - 1)
        found[each.name] = ReferencedText(each.name, target.text)
        if len(found) > REFERENCED_MAX:
            raise refusals.invalid_schema(f"references lead to more than {REFERENCED_MAX} schemas")


def resolved(state: State, context: str, references: Sequence[Reference]) -> tuple[Reference, ...]:
    """With the versions that they stand for now, where they say the latest. Raises 42201."""
    found = []
    for each in references:
        target = state.get(in_context(context, each.subject), each.version, deleted=each.version > 0)
        if target is None:
            raise refusals.invalid_schema(
                f'No schema reference found for subject "{each.subject}" and version {each.version}'
            )
        found.append(Reference(each.name, each.subject, target.version))
    return tuple(found)


async def stays() -> bool:
    """A client of whom nobody knows whether it is there."""
    return False


class Lane:
    """So many checks at a time, from the first parse to the last comparison: what is parsed is held for as long."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._waiting_max = waiting_max
        self._waiting = 0

    @asynccontextmanager
    async def turn(self, is_gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Nothing is done for a client that went meanwhile. Raises 50002 or 400."""
        must_wait = self._turns.locked()
        if must_wait and self._waiting >= self._waiting_max:
            raise refusals.timed_out("too many schemas are being checked; try again")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            if must_wait and await is_gone():
                raise ApiError(400, "the client is gone")
            yield
        finally:
            self._turns.release()


class Checker:
    """Parsed schemas are kept, the last used the longest, up to a number of bytes of text."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(SMALL_AT_ONCE + LARGE_AT_ONCE, "schemas")
        self._small = Lane(SMALL_AT_ONCE, SMALL_WAITING_MAX)
        self._large = Lane(LARGE_AT_ONCE, LARGE_WAITING_MAX)
        self._kept: OrderedDict[Source, ParsedSchema] = OrderedDict()
        self._kept_bytes = 0
        self._trimming = Trimming()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def turn(self, size: int, is_gone: Callable[[], Awaitable[bool]]) -> AbstractAsyncContextManager[None]:
        """For whoever asks for more than one thing below; `size` is of all texts that are to be parsed."""
        return (self._large if size > LARGE_BYTES else self._small).turn(is_gone)

    async def parse(self, source: Source) -> ParsedSchema:
        """Raises 42201."""
        kept = self._kept.get(source)
        if kept is not None:
            self._kept.move_to_end(source)
            return kept
        try:
            parsed = await self._in_thread(lambda: _parsed(source))
        finally:
            if source.size > LARGE_BYTES:
                self._trimming.soon()
        self._keep(source, parsed)
        return parsed

    async def normalized(self, parsed: ParsedSchema) -> str:
        return await self._in_thread(lambda: parsed.normalized)

    async def canonical(self, parsed: ParsedSchema) -> str:
        return await self._in_thread(lambda: parsed.canonical)

    async def formatted(self, source: Source, form: str) -> str:
        async with self.turn(source.size, stays):
            parsed = await self.parse(source)
            return await self._in_thread(lambda: parsed.formatted(form))

    async def tagged(self, source: Source, taggings: Sequence[Tagging], is_gone: Callable[[], Awaitable[bool]]) -> str:
        """Raises 42201 for a path that leads nowhere."""
        async with self.turn(source.size, is_gone):
            try:
                return await self._in_thread(
                    lambda: formats.tagged(source.type, source.text, source.references, taggings)
                )
            finally:
                if source.size > LARGE_BYTES:
                    self._trimming.soon()

    async def problems(
        self,
        new: ParsedSchema,
        level: str,
        previous: Sequence[StoredSchema],
        sources: Callable[[StoredSchema], Source],
        *,
        reserved: Sequence[str] | None = None,
    ) -> list[str]:
        """Why the level forbids the schema beside earlier ones, which come from the first to the latest.

        `reserved` is what is wrong with its reserved fields, and None where these are not judged.
        """
        problems = [*(reserved or ())]
        chosen = reversed(previous) if level.endswith("_TRANSITIVE") else previous[-1:]
        for each in chosen if level != "NONE" else ():
            source = sources(each)  # one by one: of thousands with references that takes a second
            old = await self.parse(source)
            found = await self._in_thread(lambda old=old: explained(new, old, level.partition("_")[0]))  # type: ignore[misc]
            if found:
                problems += [*found, f"{{oldSchemaVersion: {each.version}}}", f"{{oldSchema: '{source.text}'}}"]
                break
        if problems:
            validates = "false" if reserved is None else "true"
            problems.append(f"{{validateFields: '{validates}', compatibility: '{level}'}}")
        return problems

    async def _in_thread(self, compute: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, compute)
        except InvalidSchema as wrong:
            raise refusals.invalid_schema(str(wrong)) from None
        except RecursionError:
            raise refusals.invalid_schema("the schema is nested too deeply") from None

    def _keep(self, source: Source, parsed: ParsedSchema) -> None:
        if source in self._kept or source.size > PARSED_BYTES_MAX // 4:
            return
        self._kept[source] = parsed
        self._kept_bytes += source.size
        while self._kept_bytes > PARSED_BYTES_MAX:
            oldest, _ = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.size


def _parsed(source: Source) -> ParsedSchema:
    try:
        return formats.parse(source.type, source.text, source.references)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None


def reserved_problems(new: ParsedSchema, metadata: Settings | None, previous: Settings | None) -> list[str]:
    """What a schema does with fields that its metadata reserves, or that of the version before. Confluent's texts."""
    own, names = _reserved(metadata), new.fields
    gone = [each for each in _reserved(previous) if each not in own]
    removed = "removed from its metadata which is present in the old schema's metadata."
    return [
        *(f"The new schema has reserved field {each} {removed}" for each in gone),
        *(f"The new schema has field that conflicts with the reserved field {each}." for each in own if each in names),
    ]


def _reserved(metadata: Settings | None) -> list[str]:
    listed = ((metadata or {}).get("properties") or {}).get(RESERVED_PROPERTY, "")
    return [*dict.fromkeys(each.strip() for each in listed.split(",") if each.strip())]


def explained(new: ParsedSchema, old: ParsedSchema, direction: str) -> list[str]:
    """Confluent's texts, one for each incompatibility."""
    if new.type != old.type:
        return ["Incompatible because of different schema type"]
    found = []
    if direction in {"BACKWARD", "FULL"}:
        found += [(each, "new", "old") for each in new.incompatibilities(old)]
    if direction in {"FORWARD", "FULL"}:
        found += [(each, "old", "new") for each in old.incompatibilities(new)]
    texts = []
    for each, reader, writer in found:
        description = each.description.replace("{reader}", reader).replace("{writer}", writer)
        texts.append(f"{{errorType:'{each.kind}', description:'{description}', additionalInfo:'{each.path}'}}")
    return texts
