"""From a properties file, the environment and the command line to a BrokerConfig."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from moldau.core.config.broker import BROKER_CONFIGS, IGNORED_PREFIXES, BrokerConfig
from moldau.core.config.definitions import ConfigError

__all__ = ["ConfigError", "load_config", "parse_overrides", "parse_properties"]

ENVIRONMENT_PREFIX = "MOLDAU_"
_TOOLS_VARIABLES = frozenset({"MOLDAU_BOOTSTRAP_SERVERS"})

_log = logging.getLogger("moldau.config")

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
            raise ConfigError("--override", argument, "key=value")
        values[key.strip()] = value.strip()
    return values


def environment_values(environment: Mapping[str, str]) -> dict[str, str]:
    """MOLDAU_LOG_RETENTION_MS sets log.retention.ms; one that names no key may be mistyped, or someone else's."""
    values: dict[str, str] = {}
    strange: list[str] = []
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _TOOLS_VARIABLES:
            continue
        key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
        if key in BROKER_CONFIGS:
            values[key] = value
        else:
            strange.append(variable)
    if strange:
        _log.warning("environment variables that name no configuration key are ignored: %s", ", ".join(sorted(strange)))
    return values


def load_config(
    properties_file: Path | None,
    environment: Mapping[str, str],
    overrides: Mapping[str, str],
    *,
    defaults: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """What the command line says wins over the environment, the environment over the file, the file over `defaults`."""
    from_file: dict[str, str] = {}
    if properties_file is not None:
        try:
            from_file = parse_properties(properties_file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as wrong:
            raise ConfigError("server.properties", properties_file, f"a readable properties file ({wrong})") from wrong
    values: dict[str, str] = {}
    for layer in (defaults or {}, from_file, environment_values(environment), overrides):
        _overlay(values, layer)
    _report_unused(values)
    return BrokerConfig.of(values)


def _overlay(values: dict[str, str], layer: Mapping[str, str]) -> None:
    """The broker's number has two names: a layer that sets one replaces the other of the layers below."""
    names = ("node.id", "broker.id")
    if any(name in layer for name in names):
        for name in names:
            values.pop(name, None)
    values.update(layer)


def _report_unused(values: Mapping[str, str]) -> None:
    unknown = sorted(name for name in values if name not in BROKER_CONFIGS)
    ignored = [name for name in unknown if name.startswith(IGNORED_PREFIXES)]
    if ignored:
        _log.info("configuration keys with no meaning here are ignored: %s", ", ".join(ignored))
    strange = [name for name in unknown if name not in ignored]
    if strange:
        _log.warning("unknown configuration keys are ignored: %s", ", ".join(strange))
