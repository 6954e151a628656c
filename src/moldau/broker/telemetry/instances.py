"""Client instances and what each may ask next: pure rules over values that take the time, as Apache Kafka has them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from moldau.broker.context import ClientInformation
from moldau.broker.telemetry.subscriptions import Client, Configs, Subscriptions, Wanted
from moldau.core.errors import ErrorCode
from moldau.core.limits import TELEMETRY_CLIENTS_MAX
from moldau.wire.compression import Codec

KEPT_MS_MIN = 60_000  # an instance that asks nothing is forgotten after so long, or after three intervals
INTERVALS_KEPT = 3
SWEEP_MS = 5_000
NEVER_MS = -(1 << 62)
_RESERVED = frozenset({bytes(16), b"\0" * 15 + b"\1"})
_CODECS = frozenset(Codec)
# An instance that was told so fetches its subscription again at once, which is not too early.
_FETCHES_AGAIN = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})


@dataclass(slots=True)
class Instance:
    client: Client
    connection: ClientInformation
    configs: Configs
    wanted: Wanted
    subscription_id: int
    got_ms: int = NEVER_MS
    pushed_ms: int = NEVER_MS
    expires_ms: int = 0
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def kept_ms(self) -> int:
        return max(KEPT_MS_MIN, INTERVALS_KEPT * self.wanted.interval_ms)


@dataclass(slots=True, frozen=True)
class Push:
    """What is judged of a request before anybody looks into its metrics."""

    subscription_id: int
    is_terminating: bool
    codec: int
    size_bytes: int


class Instances:
    def __init__(self, payload_bytes_max: int, instances_max: int = TELEMETRY_CLIENTS_MAX) -> None:
        self.payload_bytes_max = payload_bytes_max
        self.throttled = self.unknown_subscriptions = 0
        self._instances_max = instances_max
        self._subscriptions = Subscriptions()
        self._known: OrderedDict[bytes, Instance] = OrderedDict()
        """The one that asked last is at the end."""
        self._swept_ms = NEVER_MS

    def __len__(self) -> int:
        return len(self._known)

    def of(self, client: Client, connection: ClientInformation, configs: Configs, now_ms: int) -> Instance:
        """The instance with this id: it lives as long as its connection, and is made anew when subscriptions change."""
        self._sweep(now_ms)
        known = self._known.get(client.instance_id)
        if known is None or not known.connection.is_connected:
            known = self._made(client, connection, configs)
        elif known.configs is not configs:
            known = self._made(known.client, connection, configs)
        known.expires_ms = now_ms + known.kept_ms
        self._known[client.instance_id] = known
        self._known.move_to_end(client.instance_id)
        if len(self._known) > self._instances_max:
            self._known.popitem(last=False)
        return known

    def new_id(self, random: Callable[[], bytes]) -> bytes:
        while True:
            found = random()
            if found not in self._known:
                return found

    def refuse_get(self, instance: Instance, now_ms: int) -> ErrorCode:
        """NONE for one who may have its subscription."""
        elapsed_ms = now_ms - max(instance.got_ms, instance.pushed_ms)
        if elapsed_ms >= instance.wanted.interval_ms:
            instance.got_ms = now_ms
        elif instance.last_error not in _FETCHES_AGAIN:
            self.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.last_error = ErrorCode.NONE
        return ErrorCode.NONE

    def refuse_push(self, instance: Instance, push: Push, now_ms: int) -> ErrorCode:
        """NONE for one whose metrics are taken."""
        instance.last_error = self._judge_push(instance, push, now_ms)
        instance.is_terminating = push.is_terminating
        return instance.last_error

    def _judge_push(self, instance: Instance, push: Push, now_ms: int) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not _may_push(instance, now_ms) and not push.is_terminating:
            self.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if push.subscription_id != instance.subscription_id:
            self.unknown_subscriptions += 1
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if push.codec not in _CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if push.size_bytes > self.payload_bytes_max else ErrorCode.NONE

    def _made(self, client: Client, connection: ClientInformation, configs: Configs) -> Instance:
        self._subscriptions.follow(configs)
        wanted = self._subscriptions.wanted_of(client)
        return Instance(client, connection, configs, wanted, wanted.subscription_id(client.instance_id))

    def _sweep(self, now_ms: int) -> None:
        if now_ms - self._swept_ms < SWEEP_MS:
            return
        self._swept_ms = now_ms
        for instance_id in [key for key, each in self._known.items() if each.expires_ms <= now_ms]:
            del self._known[instance_id]


def _may_push(instance: Instance, now_ms: int) -> bool:
    """Once after a Get at any time, for clients spread their first push over half to one and a half intervals."""
    is_due = instance.got_ms > instance.pushed_ms or now_ms - instance.pushed_ms >= instance.wanted.interval_ms
    if is_due:
        instance.pushed_ms = now_ms
    return is_due


def is_reserved(instance_id: bytes) -> bool:
    return instance_id in _RESERVED
