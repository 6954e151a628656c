"""From a properties file, the environment and the command line to a BrokerConfig."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from moldau.core.config.broker import BROKER_CONFIGS, BrokerConfig, listener_key
from moldau.core.config.definitions import ConfigError, UnreadableInput
from moldau.core.config.environment import environment_settings
from moldau.core.config.listeners import PLAINTEXT, PROTOCOLS, parse_protocol_map
from moldau.core.config.older_names import HONOURED, translate
from moldau.core.config.settings import (
    Setting,
    is_default,
    is_for_listener,
    is_known,
    refuse,
    subject,
    with_suggestion,
)
from moldau.core.config.support import without_effect

__all__ = ["ConfigError", "load_config", "parse_overrides", "parse_properties"]

LOGGER = logging.getLogger(__name__)

COMMAND_LINE = "command line"
_DEFAULT_HOST = "127.0.0.1"

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)\Z", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Java's properties format; the last of several values for one key wins."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None, "the pattern takes any line"
        values[_unescape(match["key"])] = _unescape(match["value"])
    return values


def _logical_lines(text: str) -> Iterable[str]:
    """Lines without comments and blanks, where a backslash at the end joins the next one."""
    held = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not held and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            held += line[:-1]
            continue
        yield held + line
        held = ""
    if held:
        yield held


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(plain, text)


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """`key=value` as given on a command line."""
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not key.strip():
            message = f"Invalid value {argument!r} for --override: expected key=value"
            raise UnreadableInput("--override", argument, message)
        values[key.strip()] = value.strip()
    return values


def load_config(
    properties_file: Path | None,
    environment: Mapping[str, str],
    overrides: Mapping[str, str],
    *,
    defaults: Mapping[str, str] | None = None,
    address: str | None = None,
) -> BrokerConfig:
    """What the command line says wins over the environment, the environment over the file, the file over `defaults`.

    `address` is a listener that takes the place of those in the environment and the file. ConfigError for a value that
    can't be used, and for a key that asks for what is not there.
    """
    from_environment, strange = environment_settings(environment)
    settings: dict[str, Setting] = {}
    for layer in (_read(properties_file), from_environment):
        _overlay(settings, layer)
    if address is not None:
        _refuse_to_open(settings, overrides)
        settings["listeners"] = Setting(address, COMMAND_LINE)
    _overlay(settings, _from(overrides, COMMAND_LINE))
    _report_environment(settings, strange)
    settings = _translate_older_names(settings)
    _refuse(settings)
    _report_unused(settings)
    values = dict(defaults or {})
    _overlay(values, {key: setting.value for key, setting in settings.items()})
    try:
        config = BrokerConfig.of(values)
    except ConfigError as wrong:
        if wrong.key in settings:
            wrong.located(settings[wrong.key].source)
        raise
    _report_absent_listeners(settings, config)
    return config


def _refuse_to_open(settings: Mapping[str, Setting], overrides: Mapping[str, str]) -> None:
    """Another address for listeners with TLS or SASL must not make them plain; `listeners` itself may."""
    listeners = settings.get("listeners")
    if listeners is None or "listeners" in overrides:
        return
    protocols = {name: name for name in PROTOCOLS}
    if "listener.security.protocol.map" in settings:
        protocols |= parse_protocol_map(settings["listener.security.protocol.map"].value)
    for entry in listeners.value.split(","):
        protocol = protocols.get(entry.strip().partition("://")[0].upper())
        if protocol is not None and protocol != PLAINTEXT:
            allowed = f"--host and --port are for a plain listener and do not replace {protocol}; change listeners"
            raise ConfigError("listeners", entry.strip(), allowed).located(listeners.source)


def _report_absent_listeners(settings: Mapping[str, Setting], config: BrokerConfig) -> None:
    names = [each.name for each in config.listeners]
    for key, setting in settings.items():
        if is_for_listener(key) and key.split(".")[2].upper() not in names:
            LOGGER.warning("%s is ignored (%s): the listeners are %s", key, setting.source, ", ".join(names))


def _read(properties_file: Path | None) -> dict[str, Setting]:
    if properties_file is None:
        return {}
    try:
        content = properties_file.read_bytes()
    except OSError as wrong:
        message = f"{properties_file} can't be read: {wrong.strerror}; expected a file of key=value lines"
        raise UnreadableInput("server.properties", properties_file, message) from wrong
    return _from(parse_properties(_decode(content)), str(properties_file))


def _decode(content: bytes) -> str:
    """Editors of today write UTF-8; Java reads every properties file as Latin-1."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _from(values: Mapping[str, str], source: str) -> dict[str, Setting]:
    return {key: Setting(value, source) for key, value in values.items()}


_Value = TypeVar("_Value")


def _overlay(values: dict[str, _Value], layer: Mapping[str, _Value]) -> None:
    """The broker's number has two names: a layer that sets one replaces the other of the layers below."""
    names = ("node.id", "broker.id")
    if any(name in layer for name in names):
        for name in names:
            values.pop(name, None)
    values.update(layer)


def _report_environment(settings: Mapping[str, Setting], strange: list[str]) -> None:
    used = sorted(setting.source for setting in settings.values() if setting.source.startswith("environment"))
    if used:
        LOGGER.info("set by the environment: %s", ", ".join(source.rpartition(" ")[2] for source in used))
    if strange:
        LOGGER.warning("environment variables that name no configuration key are ignored: %s", ", ".join(strange))


def _translate_older_names(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    older = {key: setting for key, setting in settings.items() if key in HONOURED}
    kept = {key: setting for key, setting in settings.items() if key not in HONOURED}
    if not older:
        return kept
    texts = {key: setting.value.strip() for key, setting in older.items()}
    meant = translate(texts, is_set=kept, default_host=_DEFAULT_HOST)
    for key, setting in older.items():
        if HONOURED[key] in meant:
            LOGGER.warning("%s is an older name (%s); use %s", key, setting.source, HONOURED[key])
        else:
            LOGGER.warning("%s is ignored (%s), because %s is set", key, setting.source, HONOURED[key])
    source = ", ".join(f"{key} in {setting.source}" for key, setting in older.items())
    return {**kept, **_from(meant, source)}


def _refuse(settings: Mapping[str, Setting]) -> None:
    """All that is relied on and not there, in one line: the first with its reason, the others by name."""
    refused = [(wrong, setting) for key, setting in settings.items() if (wrong := _refusal(key, setting)) is not None]
    if not refused:
        return
    wrong, setting = refused[0]
    others = ", ".join(each.key for each, _ in refused[1:])
    raise wrong.located(f"{setting.source}; refused too: {others}" if others else setting.source)


def _refusal(key: str, setting: Setting) -> ConfigError | None:
    try:
        return refuse(key, setting.value)
    except ConfigError as wrong:  # not even Kafka would take this value
        return wrong


def _report_unused(settings: Mapping[str, Setting]) -> None:
    idle: dict[str, list[str]] = {}
    unknown: list[str] = []
    for key, setting in sorted(settings.items()):
        reason = without_effect(subject(key))
        if reason is not None:
            if key not in BROKER_CONFIGS or not _is_default(key, setting):
                idle.setdefault(reason, []).append(key)
        elif key not in BROKER_CONFIGS and listener_key(key) is None and not is_known(key):
            unknown.append(with_suggestion(key))
    for reason, keys in idle.items():
        LOGGER.warning("configuration keys without effect: %s (%s)", ", ".join(keys), reason)
    if unknown:
        LOGGER.warning("unknown configuration keys are ignored: %s", ", ".join(unknown))


def _is_default(key: str, setting: Setting) -> bool:
    try:
        return is_default(key, setting.value)
    except ConfigError as wrong:
        raise wrong.located(setting.source) from None
