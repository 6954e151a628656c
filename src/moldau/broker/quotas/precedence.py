"""Which limit a client has: the most specific one, in Kafka's order, and with whom it shares it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from moldau.controller.image import QuotaEntity
from moldau.controller.settings.quotas import CLIENT_ID, USER

SharedBy: TypeAlias = tuple[str | None, str | None]
"""The user and the client id that a limit is for; None for all of them together."""

_SHORT_CHARS = 128  # a client id may have 32,767, and is remembered as long as its rate is


class Limit(NamedTuple):
    value: float
    shared_by: SharedBy


class Limits:
    """The limits of one key, such as `producer_byte_rate`."""

    __slots__ = ("_by_client", "_by_user", "_by_user_and_client", "is_empty")

    def __init__(self, key: str, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._by_user: dict[str | None, float] = {}
        self._by_client: dict[str | None, float] = {}
        self._by_user_and_client: dict[tuple[str | None, str | None], float] = {}
        for entity, values in quotas.items():
            value, parts = values.get(key), dict(entity)
            if value is None:
                continue
            if USER in parts and CLIENT_ID in parts:
                self._by_user_and_client[parts[USER], parts[CLIENT_ID]] = value
            elif USER in parts:
                self._by_user[parts[USER]] = value
            elif CLIENT_ID in parts:
                self._by_client[parts[CLIENT_ID]] = value
        self.is_empty = not (self._by_user or self._by_client or self._by_user_and_client)

    def of(self, user: str, client_id: str) -> Limit | None:
        """None where there is no limit. A client without an id has none by client id, as in Kafka."""
        for each in (user, None):  # the user's own before the default of users
            if client_id and (value := self._of_both(each, client_id)) is not None:
                return Limit(value, (user, _short(client_id)))
            if (value := self._by_user.get(each)) is not None:
                return Limit(value, (user, None))
        if client_id and self._by_client:
            value = self._by_client.get(client_id, self._by_client.get(None))
            return None if value is None else Limit(value, (None, _short(client_id)))
        return None

    def _of_both(self, user: str | None, client_id: str) -> float | None:
        both = self._by_user_and_client
        return both.get((user, client_id), both.get((user, None))) if both else None


def _short(client_id: str) -> str:
    """Of a long one its beginning and a number, which is not the same in another process."""
    if len(client_id) <= _SHORT_CHARS:
        return client_id
    return f"{client_id[:_SHORT_CHARS]}{hash(client_id)}"
