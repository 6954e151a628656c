"""`moldau quotas`: list, set and delete the limits of users, client ids and addresses."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.output import TABLE, Change, print_changes, print_rows
from moldau.cli.quotas.words import (
    TYPES,
    USER,
    Entity,
    entity_words,
    known_key,
    parsed_value,
    shown_entity,
    shown_values,
)
from moldau.cli.wire import open_cluster, refusal
from moldau.client.cluster import Cluster
from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from moldau.wire.messages.describe_client_quotas import ComponentData

EXACT, DEFAULT = 0, 1


def list_quotas(options: Namespace) -> int:
    entity, others = entity_words(options.words)
    if others:
        raise UsageError(f"{others[0]}: expected an entity, such as {TYPES[0]}=NAME")
    with open_cluster(options) as client:
        found = described(client, entity, strict=False)
    if options.output == TABLE:
        lines = [{"entity": shown_entity(each), "quotas": shown_values(values)} for each, values in found]
        print_rows(lines, columns=("entity", "quotas"), output=TABLE)
    else:
        rows = [{"entity": dict(each), "quotas": dict(values)} for each, values in found]
        print_rows(rows, columns=(), output=options.output)
    return OK


def set_quotas(options: Namespace) -> int:
    entity, others = entity_words(options.words)
    values = dict(pair(word) for word in others)
    if not entity or not values:
        raise UsageError("expected an entity and what to set, such as user=alice producer_byte_rate=1MiB")
    if (user := entity.get(USER) or "").startswith("User:"):
        raise UsageError(f"user={user}: quotas name users without their type; use user={user.removeprefix('User:')}")
    with open_cluster(options) as client:
        alter(client, entity, [OpData(key, value) for key, value in values.items()])
    line = f"set {shown_entity(entity)} {shown_values(values)}"
    row = {"entity": dict(entity), "quotas": values, "done": "set"}
    print_changes([Change(row, line)], output=options.output)
    return OK


def pair(word: str) -> tuple[str, float]:
    key, equals, text = word.partition("=")
    known_key(key)
    if not equals:
        raise UsageError(f"{word}: expected {key}=VALUE")
    return key, parsed_value(key, text)


def delete_quotas(options: Namespace) -> int:
    entity, others = entity_words(options.words)
    if not entity:
        raise UsageError("expected an entity, such as user=alice")
    keys = [known_key(word) for word in dict.fromkeys(others)]
    with open_cluster(options) as client:
        there = {key for _, values in described(client, entity, strict=True) for key in values}
        missing = [key for key in keys if key not in there]
        if missing or not there:
            raise CommandFailed(f"{shown_entity(entity)} has no {missing[0] if missing else 'quotas'}")
        wanted = keys or sorted(there)
        alter(client, entity, [OpData(key, remove=True) for key in wanted])
    line = f"deleted {shown_entity(entity)} {' '.join(wanted)}"
    row = {"entity": dict(entity), "quotas": dict.fromkeys(wanted), "done": "deleted"}
    print_changes([Change(row, line)], output=options.output)
    return OK


def described(client: Cluster, entity: Entity, *, strict: bool) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """Of entities that have these names, in order."""
    components = [ComponentData(kind, DEFAULT if name is None else EXACT, name) for kind, name in entity.items()]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer = client.ask(request, DescribeClientQuotasResponse)
    if answer.error_code != ErrorCode.NONE:
        raise CommandFailed(refusal(answer.error_code, answer.error_message))
    found = [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or []
    ]
    return sorted(found, key=lambda each: shown_entity(each[0]))


def alter(client: Cluster, entity: Entity, ops: Iterable[OpData]) -> None:
    entry = EntryData([EntityData(kind, name) for kind, name in entity.items()], list(ops))
    answer = client.ask(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse)
    for altered in answer.entries:
        if altered.error_code != ErrorCode.NONE:
            raise CommandFailed(f"{shown_entity(entity)}: {refusal(altered.error_code, altered.error_message)}")
