"""Which topics a regular expression of Apache Kafka's tools names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.cli.failures import UsageError
from moldau.core.topic_names import is_internal


def topic_pattern(text: str) -> re.Pattern[str]:
    """A list of names with commas is one that allows each of them; it is the whole name that has to fit."""
    written = re.sub(r"""^["']+|["']+$""", "", text.strip().replace(",", "|").replace(" ", ""))
    try:
        return re.compile(written)
    except re.error:
        raise UsageError(f"{written} is an invalid regex.") from None


def allowed(names: Iterable[str], text: str | None, *, exclude_internal: bool) -> list[str]:
    pattern = None if text is None else topic_pattern(text)
    return [
        name
        for name in names
        if not (exclude_internal and is_internal(name)) and (pattern is None or pattern.fullmatch(name))
    ]
