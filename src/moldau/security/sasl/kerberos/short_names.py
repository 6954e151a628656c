"""`sasl.kerberos.principal.to.local.rules`: from a principal to the name of a user, as Kafka's KerberosShortNamer.

A rule is `DEFAULT`, which takes the first component of a principal of the default realm, or
`RULE:[n:format](pattern)s/from/to/g/L` for principals of n components: the format is filled in, `$0` with the realm,
and the result counts if the pattern describes the whole of it; then `from` is replaced by `to`, once or with `g`
everywhere, and the case is changed. The first rule that takes a principal decides. A result with a `/` or `@` lets
nobody in, so that a rule can't make one principal look like another. Patterns are RE2's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moldau.core.limits import KIB
from moldau.core.patterns import InvalidPattern, compile_expression
from moldau.security.replacements import InvalidReplacement, Template, parse_replacement, replaced

DEFAULT = "DEFAULT"
PRINCIPAL_CHARS_MAX = (
    4 * KIB
)  # a realm's administrator names principals; those of machines have some hundred characters
RESULT_CHARS_MAX = 32_767  # of a string in Kafka's protocol, by which brokers tell each other of principals
DIGITS_MAX = 9  # of a number of components, which is 1 or 2 where it is to be of any use

_PRINCIPAL = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"RULE:\[(?P<components>[0-9]*):(?P<format>[^\]]*)\](?:\((?P<pattern>[^)]*)\))?"
    r"(?:s/(?P<replaced>[^/]*)/(?P<by>[^/]*)/(?P<everywhere>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"([^$]*)(?:\$([0-9]*))?")


class InvalidRule(Exception):
    """The text quotes the rule, and says what is wrong with it."""


class NoShortName(Exception):
    """No rule makes a user of this principal: nobody is let in by it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`components` is None for DEFAULT."""

    text: str
    components: int | None = None
    format: Template = ()
    pattern: Any = field(default=None, repr=False, compare=False)
    replaced: Any = field(default=None, repr=False, compare=False)
    by: Template = ()
    is_everywhere: bool = False
    case: str | None = None

    def apply(self, parts: tuple[str, ...], default_realm: str) -> str | None:
        """`parts` are the realm and the components behind it. NoShortName for a result that is no simple name."""
        found = self._of_realm(parts, default_realm) if self.components is None else self._filled_in(parts)
        if found is not None and ("/" in found or "@" in found):
            raise NoShortName(f"rule {self.text!r} makes {found!r}, which is no simple name")
        return found if found is None or self.case is None else found.lower() if self.case == "L" else found.upper()

    def _of_realm(self, parts: tuple[str, ...], default_realm: str) -> str | None:
        return parts[1] if parts[0] == default_realm else None

    def _filled_in(self, parts: tuple[str, ...]) -> str | None:
        if len(parts) - 1 != self.components:
            return None
        base = "".join(each if isinstance(each, str) else parts[each] for each in self.format)
        if self.pattern is not None and self.pattern.fullmatch(base) is None:
            return None
        if self.replaced is None:
            return base
        return replaced(self.replaced, self.by, base, is_first_only=not self.is_everywhere)


@dataclass(frozen=True, slots=True)
class ShortNamer:
    rules: tuple[Rule, ...]
    default_realm: str

    def name_of(self, principal: str) -> str:
        """The user's name. Raises NoShortName."""
        parts = _parts(principal)
        if len(parts) == 1:
            return parts[0]
        for rule in self.rules:
            name = rule.apply(parts, self.default_realm)
            if name is not None:
                if len(name) > RESULT_CHARS_MAX:
                    raise NoShortName(f"rule {rule.text!r} makes a name of {len(name)} characters")
                return name
        raise NoShortName(f"no rule of sasl.kerberos.principal.to.local.rules applies to {principal!r}")


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Raises InvalidRule."""
    return tuple(_rule(text) for text in texts)


def _parts(principal: str) -> tuple[str, ...]:
    """The realm and one or two components, or a name without a realm alone."""
    if len(principal) > PRINCIPAL_CHARS_MAX:
        raise NoShortName(f"a principal of {len(principal)} characters; allowed {PRINCIPAL_CHARS_MAX}")
    found = _PRINCIPAL.fullmatch(principal)
    # A backslash is how the library writes a / or @ inside of a component, which must not be taken for its end.
    if "\\" in principal or (found is None and "@" in principal):
        raise NoShortName(f"malformed Kerberos name: {principal!r}")
    if found is None:
        return (principal,)
    first, second, realm = found.groups()
    return (realm, first) if second is None else (realm, first, second)


def _rule(text: str) -> Rule:
    if text == DEFAULT:
        return Rule(text)
    found = _RULE.match(text)
    if found is None or found.end() != len(text):
        raise InvalidRule(f"{text!r} is neither DEFAULT nor RULE:[n:format](pattern)s/from/to/g/L")
    digits = found["components"]
    if not digits or len(digits) > DIGITS_MAX:
        raise InvalidRule(f"{text!r} has no number of components before its colon")
    by: Template = ()
    changed = _expression(found["replaced"], text)
    if changed is not None:
        try:
            by = parse_replacement(found["by"], changed, keeps_unknown_groups=False)
        except InvalidReplacement as wrong:
            raise InvalidRule(f"{text!r} {wrong}") from None
    return Rule(
        text,
        int(digits),
        tuple(_format(found["format"], int(digits), text)),
        _expression(found["pattern"], text),
        changed,
        by,
        found["everywhere"] is not None,
        found["case"],
    )


def _format(format_text: str, components: int, text: str) -> Iterator[str | int]:
    """Kafka finds these mistakes when somebody logs in, and then lets nobody in."""
    for literal, digits in ((each[1], each[2]) for each in _PARAMETER.finditer(format_text)):
        yield literal
        if digits is None:
            continue
        if not digits or len(digits) > DIGITS_MAX or int(digits) > components:
            raise InvalidRule(f"{text!r} has ${digits} in its format; allowed are $0 to ${components}")
        yield int(digits)


def _expression(pattern: str | None, text: str) -> Any:
    if pattern is None:
        return None
    try:
        return compile_expression(pattern, captures=True)
    except InvalidPattern as wrong:
        raise InvalidRule(f"a pattern of {text!r} is no regular expression of RE2: {wrong}") from None
