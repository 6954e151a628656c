"""A value and where it was set, from the properties file, the environment or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.core.config.broker import AUTHORIZER_KEYS, BROKER_CONFIGS, LISTENER_KEYS, listener_key
from moldau.core.config.definitions import ConfigError
from moldau.core.config.metadata_store import METADATA_STORE_CONFIGS
from moldau.core.config.monitoring import MONITORING_CONFIGS
from moldau.core.config.older_names import HONOURED, RENAMED
from moldau.core.config.support import SECURING, Refusal, refusal, without_effect

_SECRET_WORDS = ("password", "secret", "jaas", "credential", "passphrase", ".key")
_LISTENER = "listener.name."
_JAAS = "sasl.jaas.config"
_SUGGESTION_LIKENESS_MIN = 0.75


class Setting(NamedTuple):
    value: str
    source: str


def is_known(key: str) -> bool:
    """Whether some release of Kafka has this key, or it is one that we can tell the right name of."""
    return (
        key in BROKER_CONFIGS
        or key in AUTHORIZER_KEYS
        or key in METADATA_STORE_CONFIGS
        or key in MONITORING_CONFIGS
        or key in HONOURED
        or key in RENAMED
        or listener_key(key) is not None
        or subject(key) in SECURING
        or without_effect(subject(key)) is not None
        or refusal(subject(key)) is not None
    )


def subject(key: str) -> str:
    """A key without the listener and the mechanism that it is for: ssl.x of listener.name.inside.ssl.x."""
    if not key.startswith(_LISTENER):
        return key
    rest = key.split(".", 3)[-1]
    at = rest.find("sasl.")
    if at < 0 and rest.partition(".")[2] in SECURING:
        return rest.partition(".")[2]
    return rest[at:] if at >= 0 else rest


def is_for_listener(key: str) -> bool:
    """Whether the key is one that a listener can have for itself, with the listener's prefix."""
    return key.startswith(_LISTENER) and (listener_key(key) is not None or subject(key) in SECURING)


def refuse(key: str, value: str) -> ConfigError | None:
    """Why a start with this setting is refused: no key has this name, or nothing has this effect."""
    renamed = RENAMED.get(key)
    if renamed is not None:
        return ConfigError(key, shown(key, value), f"no broker key has this name; use {renamed}")
    return unsupported(key, value)


def unsupported(key: str, value: str) -> ConfigError | None:
    """What somebody would rely on in vain who sets this key; None when it is there, or not asked for."""
    if subject(key) == _JAAS and value.strip() and not _of_mechanism(key):
        allowed = f"a broker's logins are configured by listener.name.<listener>.<mechanism>.{_JAAS}"
        return ConfigError(key, shown(key, value), allowed)
    meant = _in_lower_case(key)
    if key != meant:
        allowed = f"Kafka takes names of listeners and mechanisms in lower case alone, and not this key; use {meant}"
        return ConfigError(key, shown(key, value), allowed)
    why = refusal(subject(key))
    if why is None or _asks_for_nothing(subject(key), value, why):
        return None
    return ConfigError(key, shown(key, value), f"{why.reason}; {why.remedy}")


def refuse_unsupported(values: Mapping[str, str]) -> None:
    """ConfigError when one of these values, set in a running broker, relies on something that is not there."""
    for key, value in values.items():
        wrong = unsupported(key, value)
        if wrong is not None:
            raise wrong


def _of_mechanism(key: str) -> bool:
    """Whether the key has the prefix of a listener, and then that of a mechanism."""
    return key.startswith(_LISTENER) and key.removeprefix(_LISTENER).removesuffix(f".{_JAAS}").count(".") == 1


def _in_lower_case(key: str) -> str:
    """A listener's key of TLS or SASL as it counts: with any other spelling it protects nothing, without a word."""
    if not key.startswith(_LISTENER) or subject(key) not in SECURING:
        return key
    prefix = key.removesuffix(subject(key))
    return prefix.lower() + subject(key)


def _asks_for_nothing(key: str, text: str, why: Refusal) -> bool:
    if not text.strip() or text.strip().lower() in why.off:
        return True
    return is_default(key, text)


def is_default(key: str, text: str) -> bool:
    definition = BROKER_CONFIGS.get(key)
    return definition is not None and definition.parse(text) == definition.default


def shown(key: str, text: str) -> str:
    """A value as it may be printed: what could be a secret is hidden."""
    definition = BROKER_CONFIGS.get(subject(key))
    is_secret = definition.sensitive if definition is not None else any(word in key for word in _SECRET_WORDS)
    return "[hidden]" if is_secret else text


def suggestion(key: str) -> str | None:
    """The key that was probably meant."""
    from difflib import get_close_matches  # costs more than the rest of a start's checks, and is hardly ever needed

    candidates = [
        *BROKER_CONFIGS,
        *AUTHORIZER_KEYS,
        *METADATA_STORE_CONFIGS,
        *MONITORING_CONFIGS,
        *HONOURED,
        *(f"listener.name.x.{each}" for each in LISTENER_KEYS),
    ]
    found = get_close_matches(key, candidates, n=1, cutoff=_SUGGESTION_LIKENESS_MIN)
    return found[0] if found else None


def with_suggestion(key: str) -> str:
    meant = suggestion(key)
    return key if meant is None else f"{key} (did you mean {meant}?)"
