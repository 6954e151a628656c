"""What Apache Kafka refuses of a change while the broker runs, although a start would accept the value."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.core.config.broker import LISTENER_KEYS, BrokerConfig, listener_key
from moldau.core.config.definitions import ConfigConflict

_THREADS = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_CLEANERS = "log.cleaner.threads"
_ONE_BROKER_EACH = frozenset({"cordoned.log.dirs"})
_UNLIMITED = -1
_AS_RETENTION = -2


def is_store_key(name: str) -> bool:
    """Whether this is about a listener's key or trust store, of all its keys the ones that may change."""
    if not name.startswith("listener.name."):
        return False
    from moldau.core.config.listener_security import TLS_STORE_KEYS, security_key  # few brokers are ever told one

    found = security_key(name)
    return found is not None and found[1] in TLS_STORE_KEYS


def refuse_for_all_brokers(values: Mapping[str, str]) -> str | None:
    """What is said of keys that can be set for one broker only."""
    found = sorted(each for each in values if each in _ONE_BROKER_EACH or is_store_key(each))
    if not found:
        return None
    return f"Cannot update these configs at default cluster level, broker id must be specified: [{', '.join(found)}]"


def check_change(old: BrokerConfig, new: BrokerConfig) -> None:
    """ConfigError when a running broker may not go from one configuration to the other."""
    for name in _THREADS:
        _check_threads(name, old.int(name), new.int(name))
    _check_cleaners(old.int(_CLEANERS), new.int(_CLEANERS))
    _check_connections(old, new)
    defaults = new.topic_defaults
    if defaults == old.topic_defaults:  # a change of anything else is not to blame for what a start accepted
        return
    _check_local_retention(
        "log.local.retention.ms", defaults.local_retention_ms, "log.retention.ms", defaults.retention_ms
    )
    _check_local_retention(
        "log.local.retention.bytes", defaults.local_retention_bytes, "log.retention.bytes", defaults.retention_bytes
    )


def _check_threads(name: str, before: int, count: int) -> None:
    """A typing error must not start a thousand threads, or leave one where there were a hundred."""
    if count == before:
        return
    failed = f"Dynamic thread count update validation failed for {name}={count}, value should "
    if count <= 0:
        raise ConfigConflict(name, count, f"{failed}be at least 1")
    if count < before // 2:
        raise ConfigConflict(name, count, f"{failed}be at least half the current value {before}")
    if count > before * 2:
        raise ConfigConflict(name, count, f"{failed}not be greater than double the current value {before}")


def _check_cleaners(before: int, count: int) -> None:
    if count < before // 2:
        message = f"Log cleaner threads cannot be reduced to less than half the current value {before}"
        raise ConfigConflict(_CLEANERS, count, message)
    if count > before * 2:
        message = f"Log cleaner threads cannot be increased to more than double the current value {before}"
        raise ConfigConflict(_CLEANERS, count, message)


def _check_connections(old: BrokerConfig, new: BrokerConfig) -> None:
    before = _connections(old)
    for name, count in _connections(new).items():
        if count <= 0 and count != before.get(name):
            raise ConfigConflict(name, count, f"Invalid {name} {count}")


def _connections(config: BrokerConfig) -> dict[str, int]:
    values = {name: config.int(name) for name in LISTENER_KEYS}
    for name in config.layers.effective():
        found = listener_key(name)
        if found is not None:
            values[name] = config.listener_int(*found)
    return values


def _check_local_retention(name: str, local: int, whole_name: str, whole: int) -> None:
    if local == _AS_RETENTION or whole == _UNLIMITED:
        return
    wrong = f"Invalid value {local} for configuration {name}: Value must not be "
    if local == _UNLIMITED:
        raise ConfigConflict(name, local, f"{wrong}-1 as {whole_name} value is set as {whole}.")
    if local > whole:
        raise ConfigConflict(name, local, f"{wrong}more than {whole_name} property value: {whole}")
