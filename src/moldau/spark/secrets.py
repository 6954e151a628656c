"""Settings that nobody else should read: known by their names, kept out of files and of what is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
HIDDEN = "***"
_NAME = (
    r"password|passwd|secret|jaas\.config|oauthbearer\.config|\.pem\b|ssl\.keystore\.key\b|token\b|access[._]?key|"
    r"account\.key|private[._]?key|user\.info"
)
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
# `postgresql://user:password@host`; `some.password = 'value'` of options and connection strings, and the same in JSON.
_IN_URL = re.compile(r"(://[^/\s:@'\"]*:)[^/\s@'\"]+(@)")
_VALUE = r"'(?:[^']|'')*'|\"[^\"]*\"|[^\s,;)&]+"
_IN_OPTION = re.compile(rf"([\w.]*(?:{_NAME})[\w.]*(?:\s*=\s*|[\"']\s*:\s*))({_VALUE})", re.IGNORECASE)


def is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def masked(text: str) -> str:
    """The text with what looks like a password taken out: for messages, lists and histories."""
    return _IN_OPTION.sub(rf"\1{HIDDEN}", _IN_URL.sub(rf"\1{HIDDEN}\2", text))


def reference_of(setting: str) -> tuple[str, str]:
    """The variable that a secret setting is handed over in, and what stands for its value in a file."""
    variable = "MOLDAU_" + re.sub(r"\W", "_", setting).upper()
    return variable, f"${{env:{variable}}}"


def missing_variables(value: str, environment: Mapping[str, str]) -> list[str]:
    return [name for name in REFERENCE.findall(value) if name not in environment]


def with_variables(value: str, environment: Mapping[str, str]) -> str:
    """`${env:NAME}` replaced by what the environment has under that name."""
    return REFERENCE.sub(lambda found: environment[found[1]], value)
