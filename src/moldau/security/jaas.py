"""The value of `sasl.jaas.config`: a login module of Java's, its control flag and its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret" user_me="secret";

Errors say what is wrong and where, by the number of a character. They quote only names that are known beforehand: where
a quote is missing, any word may be a part of a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moldau.core.limits import JAAS_CHARS_MAX

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"

# The module that each mechanism logs in with.
MODULES: Mapping[str, str] = MappingProxyType(
    {
        "PLAIN": PLAIN_MODULE,
        "SCRAM-SHA-256": SCRAM_MODULE,
        "SCRAM-SHA-512": SCRAM_MODULE,
        "OAUTHBEARER": OAUTHBEARER_MODULE,
        "GSSAPI": KERBEROS_MODULE,
        "DIGEST-MD5": DIGEST_MODULE,
    }
)
CONTROL_FLAGS = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
USER_PREFIX = "user_"  # of PLAIN's options: user_NAME="password" is somebody who may log in
KNOWN_OPTIONS = frozenset(
    {
        *("username", "password", "tokenauth", "serviceName", "clientId", "clientSecret", "scope"),
        *(
            "useKeyTab",
            "keyTab",
            "storeKey",
            "principal",
            "useTicketCache",
            "ticketCache",
            "doNotPrompt",
            "isInitiator",
        ),
    }
)

_TOKEN = re.compile(
    r"""(?P<space>\s+ | //[^\n]* | /\*.*?\*/)
    | "(?P<double>(?:[^"\\\n]|\\.)*)"
    | '(?P<single>(?:[^'\\\n]|\\.)*)'
    | (?P<sign>[=;])
    | (?P<word>[\w$.-]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = MappingProxyType({"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"})


class InvalidJaasConfig(Exception):
    """The text says what is wrong, and holds no option's value."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    name: str
    control_flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def username(self) -> str | None:
        return self.options.get("username")

    @property
    def password(self) -> str | None:
        return self.options.get("password")

    @property
    def users(self) -> dict[str, str]:
        """PLAIN's users who may log in here, with their passwords."""
        size = len(USER_PREFIX)
        return {name[size:]: value for name, value in self.options.items() if name.startswith(USER_PREFIX)}

    @property
    def is_token_auth(self) -> bool:
        """SCRAM's username and password are a delegation token's."""
        return self.options.get("tokenauth", "").lower() == "true"


@dataclass(frozen=True, slots=True)
class JaasPasswords:
    """PLAIN's users of a listener, for its logins."""

    module: LoginModule

    def lookup(self, user: str) -> str | None:
        return self.module.options.get(USER_PREFIX + user)


def login_line(module: str, *, user: str, password: str) -> str:
    """What a client or a broker logs in with, whatever characters are in it."""
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password)]
    return f'{module} required username="{quoted[0]}" password="{quoted[1]}";'


def jaas_config_key(listener: str, mechanism: str) -> str:
    """Where a broker's listener has its value; without the prefix the key is a client's."""
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def login_module(value: str, mechanism: str) -> LoginModule:
    """The one module of a value, which has to be that of the mechanism."""
    modules = parse_jaas_config(value)
    if len(modules) != 1:
        raise InvalidJaasConfig(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    expected = MODULES.get(mechanism)
    if expected is None:
        raise InvalidJaasConfig(f"no login module for mechanism {mechanism}; expected one of {', '.join(MODULES)}")
    if modules[0].name != expected:
        raise InvalidJaasConfig(f"login module {modules[0].name} is not for mechanism {mechanism}; expected {expected}")
    return modules[0]


def parse_jaas_config(value: str) -> list[LoginModule]:
    if len(value) > JAAS_CHARS_MAX:
        raise InvalidJaasConfig(f"{len(value)} characters; at most {JAAS_CHARS_MAX} are allowed")
    reading = _Reading(_tokens(value))
    modules = []
    while not reading.is_at_end:
        modules.append(_module(reading))
    if not modules:
        raise InvalidJaasConfig("Login module not specified in JAAS config")
    return modules


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    at: int
    is_sign: bool = False


def _tokens(value: str) -> Iterator[_Token]:
    at = 0
    while at < len(value):
        match = _TOKEN.match(value, at)
        if match is None:
            what = "a quote that is not closed" if value[at] in "\"'" else "an unexpected character"
            raise InvalidJaasConfig(
                f"{what} at character {at + 1}; values with other characters than letters need quotes"
            )
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            yield _Token(_ESCAPE.sub(_unescaped, quoted), at)
        elif match["space"] is None:
            yield _Token(match[0], at, is_sign=match["sign"] is not None)
        at = match.end()


def _unescaped(escape: re.Match[str]) -> str:
    """As Java's StreamTokenizer reads them."""
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)


class _Reading:
    """The tokens of a value, one after the other; what follows a mistake is not read."""

    __slots__ = ("_next", "_tokens")

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self._next = next(tokens, None)

    @property
    def is_at_end(self) -> bool:
        return self._next is None

    def take_text(self, otherwise: str) -> _Token:
        token = self._next
        if token is None or token.is_sign:
            where = "at the end" if token is None else f"at character {token.at + 1}"
            raise InvalidJaasConfig(f"{otherwise} ({where})")
        self._next = next(self._tokens, None)
        return token

    def take_sign(self, sign: str) -> bool:
        """Whether it is the next token."""
        is_next = self._next is not None and self._next.is_sign and self._next.text == sign
        if is_next:
            self._next = next(self._tokens, None)
        return is_next


def _module(reading: _Reading) -> LoginModule:
    name = reading.take_text("Login module not specified in JAAS config")
    if name.text not in MODULES.values():
        known = ", ".join(sorted(set(MODULES.values())))
        raise InvalidJaasConfig(f"unknown login module at character {name.at + 1}; expected one of {known}")
    flag = reading.take_text("Login module control flag not specified in JAAS config")
    if flag.text.upper() not in CONTROL_FLAGS:
        raise InvalidJaasConfig(
            f"Invalid login module control flag at character {flag.at + 1} in JAAS config; expected one of "
            + ", ".join(sorted(each.lower() for each in CONTROL_FLAGS))
        )
    options: dict[str, str] = {}
    while not reading.take_sign(";"):
        key = reading.take_text("JAAS config entry not terminated by semi-colon")
        missing = f"Value not specified for {_quotable(key)} in JAAS config"
        if not reading.take_sign("="):
            raise InvalidJaasConfig(missing)
        options[key.text] = reading.take_text(missing).text
    return LoginModule(name.text, flag.text.lower(), options)


def _quotable(key: _Token) -> str:
    """An option by its name, if the name is one that can't be a piece of a password."""
    return f"key '{key.text}'" if key.text in KNOWN_OPTIONS else f"the key at character {key.at + 1}"
