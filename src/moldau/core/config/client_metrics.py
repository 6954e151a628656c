"""Configurations of client metrics (KIP-714): which clients push which of their own metrics, and how often.

The rules and the words are Apache Kafka's, but for one: patterns are RE2's, which match in linear time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from moldau.core.config.definitions import ConfigConflict, ConfigDef, ConfigError, ConfigType, ConfigValue, list_of
from moldau.core.patterns import CompiledPattern, InvalidPattern, compile_pattern

METRICS, INTERVAL_MS, MATCH = "metrics", "interval.ms", "match"
INTERVAL_MS_DEFAULT = 300_000
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
ALL_METRICS = "*"

CLIENT_INSTANCE_ID = "client_instance_id"
CLIENT_ID = "client_id"
CLIENT_SOFTWARE_NAME = "client_software_name"
CLIENT_SOFTWARE_VERSION = "client_software_version"
CLIENT_SOURCE_ADDRESS = "client_source_address"
CLIENT_SOURCE_PORT = "client_source_port"
SELECTORS = frozenset(
    {
        CLIENT_INSTANCE_ID, CLIENT_ID, CLIENT_SOFTWARE_NAME,
        CLIENT_SOFTWARE_VERSION, CLIENT_SOURCE_ADDRESS, CLIENT_SOURCE_PORT,
    }
)  # fmt: skip

_DEFINITIONS = (
    ConfigDef(METRICS, ConfigType.LIST, (), list_of(may_be_empty=True), "Telemetry metric name prefix list"),
    ConfigDef(INTERVAL_MS, ConfigType.INT, INTERVAL_MS_DEFAULT, None, "Metrics push interval in milliseconds"),
    ConfigDef(MATCH, ConfigType.LIST, (), list_of(may_be_empty=True), "Client match criteria"),
)
CLIENT_METRICS_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in _DEFINITIONS})


class InvalidSubscription(ConfigConflict):
    """What Kafka calls an invalid request, and not an invalid configuration."""


def validate_client_metrics(values: Mapping[str, str]) -> None:
    """ConfigError, or InvalidSubscription, when a subscription can't have these values."""
    for name, text in values.items():
        if name not in CLIENT_METRICS_CONFIGS:
            raise InvalidSubscription(name, text, f"Unknown client metrics configuration: {name}")
    parsed = {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in values.items()}
    interval_ms = parsed.get(INTERVAL_MS, INTERVAL_MS_DEFAULT)
    assert isinstance(interval_ms, int), "its type says so"
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise InvalidSubscription(
            INTERVAL_MS,
            interval_ms,
            f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between {INTERVAL_MS_MIN} and "
            f"{INTERVAL_MS_MAX} (1 hour)",
        )
    parse_selectors(_listed(parsed.get(MATCH, ())))


def parse_selectors(items: Sequence[str]) -> dict[str, CompiledPattern]:
    """What a client must be like, by selector; of two patterns for one selector the later counts. ConfigError."""
    patterns: dict[str, CompiledPattern] = {}
    for item in items:
        # As Java splits: what follows the last value is dropped where it is empty.
        parts = item.rstrip("=").split("=")
        if len(parts) != 2 or parts[0].strip() not in SELECTORS:
            raise _illegal(item)
        try:
            patterns[parts[0].strip()] = compile_pattern(parts[1].strip())
        except InvalidPattern:
            raise _illegal(item) from None
    return patterns


def _illegal(item: str) -> ConfigError:
    return ConfigConflict(MATCH, item, f"Illegal client matching pattern: {item}")


def client_metrics_list(name: str, values: Mapping[str, str]) -> tuple[str, ...]:
    return _listed(CLIENT_METRICS_CONFIGS[name].parse(values[name]) if name in values else ())


def client_metrics_interval_ms(values: Mapping[str, str]) -> int:
    found = CLIENT_METRICS_CONFIGS[INTERVAL_MS].parse(values[INTERVAL_MS]) if INTERVAL_MS in values else None
    return found if isinstance(found, int) else INTERVAL_MS_DEFAULT


def _listed(value: ConfigValue) -> tuple[str, ...]:
    assert isinstance(value, tuple), "its type says so"
    return value
