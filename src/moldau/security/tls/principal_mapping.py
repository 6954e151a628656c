"""`ssl.principal.mapping.rules`: from a certificate's distinguished name to the name of a user, as Kafka has it.

The rules are a list of `DEFAULT` and `RULE:pattern/replacement/[LU]`; the first whose pattern describes the whole name
counts. Its result is what Java's `replaceAll` makes of the name, so that an empty match at the end counts once more.
Patterns are RE2's, whose time grows with the name and no faster: one that looks ahead or refers back is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from moldau.core.limits import KIB
from moldau.core.patterns import InvalidPattern, compile_expression
from moldau.security.replacements import InvalidReplacement, Template, parse_replacement, replaced
from moldau.security.tls.settings import TlsConfigError

KEY = "ssl.principal.mapping.rules"
RULES_CHARS_MAX = 32 * KIB  # taking the list apart looks at the rest of it once for each rule
NAME_CHARS_MAX = 4 * KIB  # RFC 5280 allows 64 characters for most parts; a replacement looks at the name once a match
RESULT_CHARS_MAX = 32_767  # of a string in Kafka's protocol, by which brokers tell each other of principals
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)


class NoMatchingRule(Exception):
    """No rule applies to the name: its owner is not let in."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`expression` is None for DEFAULT."""

    text: str
    expression: Any = field(default=None, repr=False, compare=False)
    template: Template = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.expression is None:
            return name
        if self.expression.fullmatch(name) is None:
            return None
        result = replaced(self.expression, self.template, name)
        return {"L": result.lower, "U": result.upper}.get(self.case, lambda: result)()


@dataclass(frozen=True, slots=True)
class PrincipalMapper:
    rules: tuple[Rule, ...]

    def name_of(self, distinguished_name: str) -> str:
        """Raises NoMatchingRule."""
        if len(distinguished_name) > NAME_CHARS_MAX:
            raise NoMatchingRule(
                f"a distinguished name of {len(distinguished_name)} characters; allowed {NAME_CHARS_MAX}"
            )
        for rule in self.rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                if len(name) > RESULT_CHARS_MAX:
                    raise NoMatchingRule(f"rule {rule.text!r} makes a name of {len(name)} characters")
                return name
        raise NoMatchingRule(f"no rule of {KEY} applies to {distinguished_name!r}")


def parse_mapping_rules(text: str) -> PrincipalMapper:
    """Raises TlsConfigError."""
    if len(text) > RULES_CHARS_MAX:
        raise TlsConfigError(KEY, f"longer than {RULES_CHARS_MAX} characters")
    parts = [found[1] for found in _SPLITTER.finditer(text.strip())]
    return PrincipalMapper(tuple(_rule(part) for part in parts if part))


def _rule(text: str) -> Rule:
    found = _PARSER.match(text)
    if found is None or found.end() != len(text):
        raise TlsConfigError(KEY, f"{text!r} is neither DEFAULT nor RULE:pattern/replacement/[LU]")
    if found[1] is not None:
        return Rule(text)
    try:
        expression = compile_expression(found[2], captures=True)
    except InvalidPattern as wrong:
        raise TlsConfigError(KEY, f"the pattern of {text!r} is no regular expression of RE2: {wrong}") from None
    try:
        template = parse_replacement(found[3], expression, keeps_unknown_groups=True)
    except InvalidReplacement as wrong:
        raise TlsConfigError(KEY, f"{text!r} {wrong}") from None
    return Rule(text, expression, template, found[4])
