"""Subjects and contexts as requests name them: `orders-value`, `:.staging:orders-value`, `:.staging:`."""

from __future__ import annotations

from moldau.registry import refusals
from moldau.schemas.subjects import DEFAULT_CONTEXT, QualifiedSubject

GLOBAL_CONTEXT = ".__GLOBAL"
GLOBAL_SETTINGS = ":.__GLOBAL:"
RESERVED = frozenset({"__GLOBAL", "__EMPTY"})
SUBJECT_CHARS_MAX = 2_048  # they are keys of records, in paths of requests and in every listing
INT_MAX = (1 << 31) - 1
LATEST = -1


def normalized(subject: str) -> str:
    """The one name of a subject: `:.:orders` is `orders`."""
    return str(QualifiedSubject.parse(subject))


def context_of(subject: str) -> str:
    return QualifiedSubject.parse(subject).context


def context_key(context: str) -> str:
    """What settings of a context are kept under: `:.staging:`, and nothing for the default one."""
    return str(QualifiedSubject(context, ""))


def in_context(context: str, name: str) -> str:
    """A name that a schema in this context refers to."""
    found = QualifiedSubject.parse(name)
    is_qualified = found.context != DEFAULT_CONTEXT
    return str(found if is_qualified else QualifiedSubject(context, found.subject))


def is_below(name: str, scope: str | None) -> bool:
    """Whether a subject is the one of this name, or in the context, or anywhere."""
    if scope is None:
        return True
    wanted = QualifiedSubject.parse(scope)
    return name == scope or (not wanted.subject and context_of(name) == wanted.context)


def checked(subject: str, *, has_settings: bool = False) -> str:
    """Normalized. Raises 42208."""
    found = QualifiedSubject.parse(subject)
    is_control = any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 for each in subject)
    is_global = found.context == GLOBAL_CONTEXT and not has_settings
    if is_control or is_global or found.subject in RESERVED or len(subject) > SUBJECT_CHARS_MAX:
        raise refusals.invalid_subject(subject)
    return str(found)


def version_of(text: str) -> int:
    """-1 for the latest. Raises 42202."""
    if text.lower() == "latest":
        return LATEST
    try:
        version = int(text) if text.isascii() and text == text.strip() and "_" not in text else 0
    except ValueError:
        version = 0
    if version != LATEST and not 0 < version <= INT_MAX:
        raise refusals.invalid_version(text)
    return version
