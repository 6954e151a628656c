"""Environment variables that set keys: ours, and those of the container images of Apache Kafka and Confluent.

    MOLDAU_LOG_RETENTION_MS      log.retention.ms
    KAFKA_LOG_RETENTION_MS       the same, as the images apache/kafka and confluentinc/cp-kafka have it
    KAFKA_CFG_LOG_RETENTION_MS   the same, as bitnami/kafka has it
    OTEL_EXPORTER_OTLP_ENDPOINT  otel.exporter.otlp.endpoint, and others of OpenTelemetry's own

One underscore is a dot, two are an underscore, three a hyphen. A variable that names no key may be mistyped, or someone
else's: it is reported, and ignored.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from moldau.core.config.monitoring import OTLP_ENDPOINT, OTLP_INTERVAL_MS
from moldau.core.config.settings import Setting, is_known

LOGGER = logging.getLogger(__name__)

OUR_PREFIX = "MOLDAU_"
KAFKA_PREFIXES = ("KAFKA_CFG_", "KAFKA_")  # the longer one first

# Patterns are compiled when they are needed, for a start has a few hundredths of a second, and mostly no such variable.
# What the images, Kafka's start scripts, clients and our tools use for themselves.
_NOT_KEYS = (
    r"(?:MOLDAU|KAFKA)_BOOTSTRAP_SERVERS|MOLDAU_(?:COMMAND_CONFIG|PROFILE|TIMEOUT|OUTPUT|REGISTRY)|"
    r"KAFKA_(?:HOME|VERSION|OPTS|HEAP_OPTS|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|DEBUG|JMX_.*|LOG4J_.*|TOOLS_LOG4J_.*)"
)
# Kubernetes and Docker tell a container about a service called kafka by KAFKA_PORT=tcp://10.0.0.1:9092 and others.
_SERVICE = r"KAFKA_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT_[0-9]+_(?:TCP|UDP).*)"
_CLUSTER_ID = r"[0-9A-Za-z_-]{22}"
_OPENTELEMETRY = (
    ("OTEL_EXPORTER_OTLP_ENDPOINT", OTLP_ENDPOINT),
    ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", OTLP_ENDPOINT),
    ("OTEL_METRIC_EXPORT_INTERVAL", OTLP_INTERVAL_MS),
)
_UNDERSCORES = r"_{1,3}"
_MEANING = {1: ".", 2: "_", 3: "-"}


def without_kafka_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """For a broker that a program starts for itself: what is set in the user's shell is for another."""
    return {name: value for name, value in environment.items() if name.startswith(OUR_PREFIX)}


def environment_settings(environment: Mapping[str, str]) -> tuple[dict[str, Setting], list[str]]:
    """The keys that are set, ours winning over the images', and the variables that name none."""
    by_prefix: dict[str, dict[str, Setting]] = {prefix: {} for prefix in (*reversed(KAFKA_PREFIXES), OUR_PREFIX)}
    strange: list[str] = []
    for variable, value in sorted(environment.items()):
        prefix = next((each for each in (OUR_PREFIX, *KAFKA_PREFIXES) if variable.startswith(each)), None)
        if prefix is None or _is_for_others(variable, value):
            continue
        key = environment_key(variable.removeprefix(prefix))
        if is_known(key):
            by_prefix[prefix][key] = Setting(value, f"environment variable {variable}")
        else:
            strange.append(variable)
    settings = _of_opentelemetry(environment)
    for found in by_prefix.values():
        settings |= found
    return settings, strange


def _of_opentelemetry(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Its own variables, which programs of all kinds heed; the later one of a key counts."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_METRICS_EXPORTER") == "none":
        return {}
    return {
        key: Setting(environment[variable], f"environment variable {variable}")
        for variable, key in _OPENTELEMETRY
        if environment.get(variable)
    }


def _is_for_others(variable: str, value: str) -> bool:
    if re.fullmatch(_NOT_KEYS, variable) or re.fullmatch(_SERVICE, variable):
        return True
    return variable == "KAFKA_PORT" and value.startswith(("tcp://", "udp://"))


def environment_key(name: str) -> str:
    """The key that a variable without its prefix stands for."""
    return re.sub(_UNDERSCORES, lambda match: _MEANING[len(match[0])], name.lower())


def cluster_id(environment: Mapping[str, str]) -> str | None:
    """The id that the images give a new cluster; another program's variable of this name is not used."""
    found = environment.get("CLUSTER_ID", "").strip()
    if found and not re.fullmatch(_CLUSTER_ID, found):
        LOGGER.warning(
            "environment variable CLUSTER_ID=%s is ignored: a cluster's id is 22 characters of base64", found
        )
        return None
    return found or None
