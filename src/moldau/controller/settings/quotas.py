"""Quotas of users, client ids, both together and addresses. Checks, their order and their words are Kafka's.

A part of an entity that has no name is the default for all that have no quota of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from moldau.controller.image import ClusterImage, Draft, QuotaEntity
from moldau.controller.records import ClientQuotasChanged
from moldau.core.config.definitions import INT_MAX, LONG_MAX
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.limits import CLIENT_QUOTAS_PER_REQUEST_MAX

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
TYPES = (CLIENT_ID, USER, IP)  # in the order of Java's hash map, which error messages show

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

FRACTION_MAX = 1e-6  # of a number that has to be whole

# The largest value and what Java calls its type; None where a number may have a fraction.
_OF_CLIENTS: Mapping[str, tuple[int, str] | None] = MappingProxyType(
    {
        PRODUCER_BYTE_RATE: (LONG_MAX, "a LONG"),
        CONSUMER_BYTE_RATE: (LONG_MAX, "a LONG"),
        REQUEST_PERCENTAGE: None,
        CONTROLLER_MUTATION_RATE: None,
    }
)
_OF_ADDRESSES: Mapping[str, tuple[int, str] | None] = MappingProxyType({CONNECTION_CREATION_RATE: (INT_MAX, "an INT")})

NO_ENTITY = "Invalid empty client quota entity"
ADDRESS_AND_MORE = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
ADDRESS_AND_MORE_ASKED = (
    "Invalid entity filter component combination. IP filter component should not be used with "
    "user or clientId filter component."
)
TOO_MANY = "Unable to perform excessively large batch operation."


class QuotaAlteration(NamedTuple):
    """The keys of one entity that change, in their order; a value of None takes a key away."""

    entity: QuotaEntity
    changes: Sequence[tuple[str, float | None]]


class AlteredQuotas(NamedTuple):
    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2
    """Any name, and the default."""


class QuotaComponent(NamedTuple):
    """What an entity's part of one type has to be."""

    entity_type: str
    match_type: int
    match: str | None = None


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """One entity has one value, whatever the order in which its parts are named; the last of one type counts."""
    return tuple(sorted(dict(parts).items(), key=lambda part: (_position(part[0]), part[0])))


def decide_alter_client_quotas(
    image: ClusterImage,
    alterations: Sequence[QuotaAlteration],
    *,
    unknown_hosts: Set[str] = frozenset(),
    validate_only: bool = False,
) -> Decision[list[AlteredQuotas]]:
    """Each entity on its own: what is wrong with one changes nothing for the others.

    `unknown_hosts` are those names of address entities that nobody could resolve.
    """
    results: dict[QuotaEntity, AlteredQuotas] = {}
    records: list[ClientQuotasChanged] = []
    for entity, changes in alterations:
        wanted = dict(changes)
        if entity in results or len(wanted) < len(changes):
            message = f"Ignoring duplicate entity {_described(entity)}"
            results[entity] = AlteredQuotas(entity, ErrorCode.INVALID_REQUEST, message)
            continue
        problem = _problem(entity, wanted, unknown_hosts)
        if problem is not None:
            results[entity] = AlteredQuotas(entity, ErrorCode.INVALID_REQUEST, problem)
            continue
        results[entity] = AlteredQuotas(entity)
        current = image.client_quotas.get(entity, {})
        changed = {key: value for key, value in wanted.items() if current.get(key) != value}
        if changed:
            records.append(ClientQuotasChanged(entity, changed))
    if sum(len(record.changes) for record in records) > CLIENT_QUOTAS_PER_REQUEST_MAX:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY)
    return Decision(() if validate_only else tuple(records), list(results.values()))


def _problem(entity: QuotaEntity, wanted: Mapping[str, float | None], unknown_hosts: Set[str]) -> str | None:
    if not entity:
        return NO_ENTITY
    for entity_type, name in entity:
        if entity_type not in TYPES:
            return f"Unhandled client quota entity type: {entity_type}"
        if name == "":
            return f"Empty {entity_type} not supported"
    parts = dict(entity)
    if IP not in parts:
        return _wrong_value(wanted, _OF_CLIENTS)
    if len(parts) > 1:
        return ADDRESS_AND_MORE
    if parts[IP] in unknown_hosts:
        return f"{parts[IP]} is not a valid IP or resolvable host."
    return _wrong_value(wanted, _OF_ADDRESSES)


def _wrong_value(wanted: Mapping[str, float | None], allowed: Mapping[str, tuple[int, str] | None]) -> str | None:
    for key, value in wanted.items():
        if value is None:
            continue  # what is not there, a key that does not exist for one, is taken away as well
        if key not in allowed:
            return f"Invalid configuration key {key}"
        if not value > 0:  # nor is NaN, which would be no limit and no permission
            return f"Quota {key} must be greater than 0"
        whole = allowed[key]
        if whole is None:
            continue
        if value > float(whole[0]):  # as Java compares them: 2**63 is as much as fits
            return f"Proposed value for {key} is too large for {whole[1]}."
        if value % 1.0 > FRACTION_MAX:
            return f"{key} cannot be a fractional value."
    return None


def _described(entity: QuotaEntity) -> str:
    parts = ", ".join(f"{entity_type}={'null' if name is None else name}" for entity_type, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _position(entity_type: str) -> int:
    return TYPES.index(entity_type) if entity_type in TYPES else len(TYPES)


def describe_client_quotas(
    image: ClusterImage, components: Iterable[QuotaComponent], *, strict: bool
) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
    """Entities with all these components and, where it is strict, no others. Raises ApiError for a wrong filter."""
    wanted: dict[str, QuotaComponent] = {}
    for component in components:
        _check(component, wanted)
        wanted[component.entity_type] = component
    if IP in wanted and len(wanted) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, ADDRESS_AND_MORE_ASKED)
    return list(_matching(image, wanted, strict=strict))


def _matching(
    image: ClusterImage, wanted: Mapping[str, QuotaComponent], *, strict: bool
) -> Iterator[tuple[QuotaEntity, Mapping[str, float]]]:
    for entity, values in image.client_quotas.items():
        parts = dict(entity)
        if not wanted.keys() <= parts.keys() or (strict and len(parts) != len(wanted)):
            continue
        if all(each.match_type == Match.SPECIFIED or parts[each.entity_type] == each.match for each in wanted.values()):
            yield entity, values


def _check(component: QuotaComponent, seen: Mapping[str, QuotaComponent]) -> None:
    entity_type, match_type, match = component
    if not entity_type:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if entity_type in seen:
        message = f"Entity type {entity_type} cannot appear more than once in the filter."
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    if entity_type not in TYPES:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")
    if match_type not in list(Match):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")
    named = f"Request specified MATCH_TYPE_{Match(match_type).name}, but"
    if match_type == Match.EXACT and match is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{named} set match string to null.")
    if match_type != Match.EXACT and match is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{named} also specified a match string.")


def apply_client_quotas_changed(draft: Draft, record: ClientQuotasChanged) -> None:
    entities = draft.client_quotas()
    merged = {**entities.get(record.entity, {}), **record.changes}
    values = {key: value for key, value in merged.items() if value is not None}
    if values:
        entities[record.entity] = values
    else:
        entities.pop(record.entity, None)
