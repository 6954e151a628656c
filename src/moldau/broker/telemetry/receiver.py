"""Takes what clients push: who may is for `instances`, a thread reads it, and the event loop adds it up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from moldau.broker.context import Context
from moldau.broker.telemetry.instances import SWEEP_MS, Instance, Instances, Push, is_reserved
from moldau.broker.telemetry.samples import Samples, open_payload, samples_of
from moldau.broker.telemetry.series import PushedSeries
from moldau.broker.telemetry.subscriptions import Client
from moldau.core.errors import ErrorCode
from moldau.core.ids import random_uuid
from moldau.core.limits import TELEMETRY_CLIENT_TEXT_BYTES_MAX
from moldau.core.text import cut
from moldau.wire.messages import PushTelemetryRequest
from moldau.wire.records import InvalidRecord

SendOn = Callable[[Client, bytes], None]
"""Takes a client's metrics as they came, but uncompressed."""


class TelemetryReceiver:
    """Owned by one event loop."""

    def __init__(self, payload_bytes_max: int, executor: Executor, elapsed_ms: Callable[[], int]) -> None:
        self.instances = Instances(payload_bytes_max)
        self.pushed = PushedSeries()
        self.payloads = self.unreadable = 0
        self.send_on: SendOn | None = None
        self.elapsed_ms = elapsed_ms
        self._executor = executor
        self._expired_ms = elapsed_ms()

    def instance_for(self, instance_id: bytes, context: Context) -> Instance:
        client = client_of(instance_id or self.instances.new_id(random_uuid), context)
        configs = context.services.controller.image.client_metrics_configs
        return self.instances.of(client, context.peer.client, configs, self.elapsed_ms())

    def refuse_push(self, request: PushTelemetryRequest, context: Context) -> ErrorCode:
        """NONE where the metrics are taken, or there are none."""
        if is_reserved(request.client_instance_id):
            return ErrorCode.INVALID_REQUEST
        instance = self.instance_for(request.client_instance_id, context)
        push = Push(request.subscription_id, request.terminating, request.compression_type, len(request.metrics))
        return self.instances.refuse_push(instance, push, self.elapsed_ms())

    def expire(self, now_ms: int) -> None:
        """Not at each push: it looks at all clients."""
        if now_ms - self._expired_ms >= SWEEP_MS:
            self._expired_ms = now_ms
            self.pushed.expire(now_ms)

    async def take(self, request: PushTelemetryRequest, context: Context) -> ErrorCode:
        """Of a push that was not refused."""
        instance = self.instance_for(request.client_instance_id, context)
        codec, payload, bytes_max = request.compression_type, bytes(request.metrics), self.instances.payload_bytes_max
        client = instance.client

        def read() -> tuple[bytes, Samples]:
            data = open_payload(codec, payload, bytes_max=bytes_max)
            return data, samples_of(client, data)

        try:
            data, samples = await context.compute(read, self._executor)
        except InvalidRecord:
            self.unreadable += 1
            instance.last_error = ErrorCode.INVALID_RECORD
            return ErrorCode.INVALID_RECORD
        self.payloads += 1
        now_ms = self.elapsed_ms()
        self.expire(now_ms)
        self.pushed.take(client, samples, until_ms=now_ms + instance.kept_ms)
        if self.send_on is not None:
            self.send_on(client, data)
        return ErrorCode.NONE


def client_of(instance_id: bytes, context: Context) -> Client:
    peer, client_id = context.peer, context.header.client_id
    return Client(
        instance_id=bytes(instance_id),
        client_id=cut(client_id or "", TELEMETRY_CLIENT_TEXT_BYTES_MAX),
        software_name=peer.client.software_name,
        software_version=peer.client.software_version,
        address=peer.host,
        port=peer.port,
        listener=peer.listener_name,
        principal=str(peer.principal),
    )
