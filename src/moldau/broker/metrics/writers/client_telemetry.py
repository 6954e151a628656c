"""What clients pushed of their own (KIP-714), and how the broker fares with that."""

from __future__ import annotations

from math import isinf, isnan

from moldau.broker.context import Services
from moldau.broker.telemetry.receiver import TelemetryReceiver
from moldau.broker.telemetry.samples import client_labels
from moldau.broker.telemetry.series import ClientSeries
from moldau.coordinator.long_work import in_slices
from moldau.core.exposition import COUNTER, Exposition

PREFIX = "kafka_server_client_metrics_"


async def write_client_telemetry(receiver: TelemetryReceiver, services: Services, out: Exposition) -> None:
    receiver.expire(receiver.elapsed_ms())
    kinds: dict[str, str] = {}
    different = 0
    async for each in in_slices(receiver.pushed.all(), services.long_work):
        _write_client(each, out)
        different += _write_series(each, kinds, out)
    help_text = "Series that are not shown, for another client's of that name have another type."
    out.add("moldau_client_telemetry_series_of_another_type", help_text, {}, different)


def _write_client(one: ClientSeries, out: Exposition) -> None:
    client = one.client
    labels = {
        **client_labels(client),
        "client_address": client.address,
        "listener": client.listener,
        "principal": client.principal,
    }
    help_text = "Clients that pushed metrics, which are found by client_instance_id."
    out.add("moldau_client_telemetry_info", help_text, labels, 1)


def _write_series(one: ClientSeries, kinds: dict[str, str], out: Exposition) -> int:
    """Gives how many have another type than another client's of that name: a name has one."""
    different = 0
    for series in [*one.series.values()]:
        if kinds.setdefault(series.family, series.kind) != series.kind:
            different += 1
            continue
        lines = out.lines(series.family, series.help_text, series.kind)
        lines.append(f"{series.text} {shown(series.value)}")
    return different


def shown(value: float) -> str:
    if isnan(value):
        return "NaN"
    return ("+Inf" if value > 0 else "-Inf") if isinf(value) else str(value)


def write_receiver(receiver: TelemetryReceiver, out: Exposition) -> None:
    instances, pushed = receiver.instances, receiver.pushed
    out.add(f"{PREFIX}instance_count", "Client instances that asked for their subscriptions.", {}, len(instances))
    for suffix, help_text, count in (
        (
            "unknown_subscription_request_total",
            "Pushes for a subscription that changed.",
            instances.unknown_subscriptions,
        ),
        ("throttle_total", "Requests before their time.", instances.throttled),
        ("plugin_export_total", "Pushes that were taken.", receiver.payloads),
        ("plugin_error_total", "Pushes that could not be read.", receiver.unreadable),
    ):
        out.add(f"{PREFIX}{suffix}", help_text, {}, count, COUNTER)
    out.add("moldau_client_telemetry_series", "Series that clients pushed.", {}, pushed.count)
    for reason, count in pushed.left_out.items():
        help_text = "Samples that clients pushed and that are not shown, by reason."
        out.add("moldau_client_telemetry_left_out_total", help_text, {"reason": reason}, count, COUNTER)
