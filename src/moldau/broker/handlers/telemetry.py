"""What clients may ask of a broker that has a place for their metrics; another one announces and answers none of it."""

from __future__ import annotations

from moldau.broker.api import Api
from moldau.broker.handlers.get_telemetry_subscriptions import get_telemetry_subscriptions
from moldau.broker.handlers.push_telemetry import push_telemetry

TELEMETRY: tuple[Api, ...] = (get_telemetry_subscriptions, push_telemetry)
