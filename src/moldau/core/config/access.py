"""Who may do what, as far as a configuration says it: which authorizer, and two keys that belong to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from moldau.core.config.definitions import ConfigConflict, ConfigError
from moldau.core.config.support import STANDARD_AUTHORIZER

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

_COMMA = re.compile(r",\s*User:")  # names of certificates have commas: User:CN=a,OU=b
_FLAGS = {"true": True, "false": False}


class AccessControl(NamedTuple):
    super_users: str
    allow_everyone_if_no_acl_found: bool


def access_control(config: BrokerConfig) -> AccessControl | None:
    """None where every client may do everything. ConfigError for what would protect nothing."""
    static = config.layers.static
    super_users = static.get("super.users", "").strip()
    allow_everyone = static.get("allow.everyone.if.no.acl.found", "").strip().lower()
    if not config.text("authorizer.class.name").strip():
        _refuse_without_authorizer(super_users, allow_everyone)
        return None
    for user in filter(None, map(str.strip, super_users.split(";"))):
        if ":" not in user:
            raise ConfigError("super.users", user, "principals as User:alice, with semicolons between them")
        if _COMMA.search(user):  # Kafka takes all of it for one user's name
            raise ConfigError("super.users", user, "semicolons between principals; commas are parts of names")
    if allow_everyone and allow_everyone not in _FLAGS:
        raise ConfigError("allow.everyone.if.no.acl.found", allow_everyone, "true or false")
    return AccessControl(super_users, _FLAGS.get(allow_everyone, False))


def _refuse_without_authorizer(super_users: str, allow_everyone: str) -> None:
    """Whoever sets these relies on others being kept out."""
    for key, value, asks_for_nothing in (
        ("super.users", super_users, ("",)),
        ("allow.everyone.if.no.acl.found", allow_everyone, ("", "true")),
    ):
        if value not in asks_for_nothing:
            message = (
                f"{key}={value} protects nothing without authorizer.class.name={STANDARD_AUTHORIZER}; "
                "set that too, or remove it"
            )
            raise ConfigConflict(key, value, message)
