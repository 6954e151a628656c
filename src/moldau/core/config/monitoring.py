"""Where a broker tells of itself: keys of ours, which no Kafka has and DescribeConfigs does not list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from moldau.core.config.definitions import ConfigDef, ConfigError, ConfigType, ConfigValue, at_least
from moldau.core.host_names import is_host_name

LISTENER = "metrics.listener"
OTLP_ENDPOINT, OTLP_INTERVAL_MS = "otel.exporter.otlp.endpoint", "otel.metric.export.interval"
LOOPBACK = "127.0.0.1"
EXPECTED = "[HOST:]PORT, as in 9404, 0.0.0.0:9404 or [::1]:0; port 0 picks a free one"

EXPECTED_URL = "the URL of an OpenTelemetry collector, as in http://collector:4318"
INTERVAL_MS_MIN, INTERVAL_MS_USUAL = 100, 60_000

_URL = re.compile(r"https?://[^/?#\s]+[^?#\s]*\Z")
_ADDRESS = re.compile(r"(?:(?:\[(?P<ipv6>[0-9a-zA-Z:%._-]+)\]|(?P<host>[^\[\]:/]+)):)?(?P<port>[0-9]{1,5})\Z")


@dataclass(frozen=True, slots=True)
class HttpAddress:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_http_address(name: str, text: str) -> HttpAddress:
    """Loopback, unless another host is named: whoever reads the metrics logs in nowhere."""
    match = _ADDRESS.match(text.strip())
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(name, text, EXPECTED)
    host = match["ipv6"] or match["host"] or LOOPBACK
    if not is_host_name(host):
        raise ConfigError(name, text, EXPECTED)
    return HttpAddress(host, int(match["port"]))


def is_http_url(text: str) -> bool:
    return _URL.match(text) is not None


def _check_endpoint(name: str, value: ConfigValue) -> None:
    if value and not is_http_url(str(value)):
        raise ConfigError(name, value, EXPECTED_URL)


def _check_listener(name: str, value: ConfigValue) -> None:
    if value:
        parse_http_address(name, str(value))


MONITORING_KEYS = (
    ConfigDef(
        LISTENER,
        ConfigType.STRING,
        None,
        _check_listener,
        f"Where /metrics, /health and /ready are answered: {EXPECTED}.",
    ),
    ConfigDef(
        OTLP_ENDPOINT,
        ConfigType.STRING,
        None,
        _check_endpoint,
        f"Where metrics are sent, by OTLP over HTTP: {EXPECTED_URL}.",
    ),
    ConfigDef(
        OTLP_INTERVAL_MS,
        ConfigType.INT,
        INTERVAL_MS_USUAL,
        at_least(INTERVAL_MS_MIN),
        "Milliseconds from one time that metrics are sent to the next.",
    ),
)

MONITORING_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in MONITORING_KEYS})
