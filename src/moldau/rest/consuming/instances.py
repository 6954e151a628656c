"""Consumer instances of v2: who made which, how many there may be, and when one that nobody asks is closed."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from moldau.rest.consuming.consumer import InstanceConsumer
from moldau.rest.problems import no_instance
from moldau.rest.sessions import Session
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads, in_thread
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import too_many

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")

SWEEP_S = 1.0
NAME_CHARS_MAX = 249
NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._:@+=,~-]+")
RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}


class Format(StrEnum):
    BINARY = "binary"
    JSON = "json"
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def has_schema(self) -> bool:
        return self not in (Format.BINARY, Format.JSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceConfig:
    name: str | None = None
    format: Format = Format.BINARY
    auto_offset_reset: str | None = None
    auto_commit: bool | None = None
    fetch_min_bytes: int | None = None
    request_timeout_ms: int | None = None

    def properties(self) -> dict[str, object]:
        found: dict[str, object] = {}
        if self.auto_offset_reset is not None:
            found["auto.offset.reset"] = RESETS[self.auto_offset_reset]
        if self.auto_commit is not None:
            found["enable.auto.commit"] = self.auto_commit
        return found


@dataclass(slots=True)
class Instance:
    owner: Session
    group: str
    name: str
    config: InstanceConfig
    consumer: InstanceConsumer
    deadline_s: float = 0.0
    uses: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def do(self, threads: Threads, what: Callable[[], T]) -> T:
        """Of all that ask for one instance one has a thread: the others would only hold more of them to wait."""
        self.uses += 1  # it does not expire meanwhile
        try:
            async with self.turn:
                return await in_thread(threads.consuming, what)
        finally:
            self.uses -= 1


class Instances:
    """An instance is found by those only who made it."""

    def __init__(self, settings: RestSettings, threads: Threads) -> None:
        self.settings = settings
        self.threads = threads
        self.expired = 0
        self._made: dict[tuple[str, str, str], Instance | None] = {}

    def __len__(self) -> int:
        return len(self._made)

    async def create(self, session: Session, group: str, config: InstanceConfig) -> Instance:
        key = (session.principal, group, config.name or self._new_name())
        self._check_room(key)
        self._made[key] = None  # taken while its consumer is made
        try:
            made = await in_thread(self.threads.consuming, lambda: self._consumer(session, group, config))
            instance = Instance(session, group, key[2], config, made)
        except BaseException:
            del self._made[key]
            raise
        session.uses += 1
        self._touch(instance)
        self._made[key] = instance
        return instance

    def get(self, session: Session, group: str, name: str) -> Instance:
        instance = self._made.get((session.principal, group, name))
        if instance is None:
            raise no_instance()
        self._touch(instance)
        return instance

    async def delete(self, session: Session, group: str, name: str) -> None:
        instance = self.get(session, group, name)
        await self._close(self._forgotten(instance))

    async def sweep(self) -> None:
        """Forever."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = time.monotonic()
            for instance in [each for each in self._made.values() if each and not each.uses]:
                if instance.deadline_s <= now_s:
                    LOGGER.info("consumer instance %s of group %s expired", instance.name, instance.group)
                    self.expired += 1
                    asyncio.get_running_loop().create_task(self._close(self._forgotten(instance)))

    async def close(self) -> None:
        there = [self._forgotten(each) for each in [*self._made.values()] if each]
        await asyncio.gather(*(self._close(each) for each in there))

    def _touch(self, instance: Instance) -> None:
        instance.deadline_s = time.monotonic() + self.settings.instance_timeout_ms / 1_000

    def _new_name(self) -> str:
        server = f"{self.settings.id}-" if self.settings.id else ""
        return f"rest-consumer-{server}{uuid.uuid4()}"

    def _check_room(self, key: tuple[str, str, str]) -> None:
        if len(key[2]) > NAME_CHARS_MAX or not NAME.fullmatch(key[2]):
            raise ApiError(42204, f"Invalid consumer configuration: {key[2][:NAME_CHARS_MAX]!r} cannot be a name")
        if key in self._made:
            raise ApiError(40902, "Consumer with specified consumer ID already exists in the specified consumer group.")
        own = sum(1 for principal, _, _ in self._made if principal == key[0])
        if len(self._made) >= self.settings.instances_max or own >= self.settings.instances_per_user_max:
            raise too_many("There are as many consumer instances as there may be; delete one, or let one expire")

    def _consumer(self, session: Session, group: str, config: InstanceConfig) -> InstanceConsumer:
        properties: Mapping[str, object] = {
            **session.client,
            **self.settings.consumer,
            **config.properties(),
            "group.id": group,
        }
        return InstanceConsumer(properties, self.settings)

    def _forgotten(self, instance: Instance) -> Instance:
        del self._made[instance.owner.principal, instance.group, instance.name]
        instance.owner.uses -= 1
        return instance

    async def _close(self, instance: Instance) -> None:
        await in_thread(self.threads.asking, instance.consumer.close)
