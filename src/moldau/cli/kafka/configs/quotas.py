"""Quotas and SCRAM credentials of users, and quotas of clients and addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.kafka.configs.changes import Changes
from moldau.cli.kafka.configs.options import CLIENTS, DEFAULT, IPS, USERS, Entities
from moldau.cli.kafka.java import double, hash_order, text_hash
from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from moldau.wire.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from moldau.wire.messages.describe_client_quotas import ComponentData
from moldau.wire.messages.describe_user_scram_credentials import UserName

QUOTA_TYPES = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_KEYS = ("connection_creation_rate",)
EXACT, OF_DEFAULT, ANY = 0, 1, 2

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
ITERATIONS_MIN = 4096
SALT_BYTES = 32
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")
Entity = tuple[tuple[str, str | None], ...]
"""A name, or the default, of each type."""

_ONLY = "using --bootstrap-server"


def describe(cluster: Cluster, entities: Entities) -> None:
    describe_quotas(cluster, entities)
    if USERS in entities.types and CLIENTS not in entities.types and DEFAULT not in entities.names:
        describe_credentials(cluster, entities.names)


def describe_quotas(cluster: Cluster, entities: Entities) -> None:
    names = [*entities.names, *[None] * (len(entities.types) - len(entities.names))]
    components = [component(kind, name) for kind, name in zip(entities.types, names, strict=True)]
    answer = cluster.ask(DescribeClientQuotasRequest(components=components, strict=True), DescribeClientQuotasResponse)
    check(answer.error_code, answer.error_message)
    found = {
        tuple((each.entity_type, each.entity_name) for each in entry.entity): {
            each.key: each.value for each in entry.values
        }
        for entry in answer.entries or []
    }
    for entity in hash_order(found, entity_hash, sized=True):
        parts, values = dict(entity), found[entity]
        who = ", ".join(entity_text(SHOWN[kind], parts[kind]) for kind in SHOWN if kind in parts)
        shown = ", ".join(f"{key}={double(values[key])}" for key in hash_order(values, text_hash, sized=True))
        print(f"Quota configs for {who} are {shown}")


def entity_hash(entity: Entity) -> int:
    """Of a ClientQuotaEntity, which holds a map."""
    parts = (text_hash(kind) ^ (0 if name is None else text_hash(name)) for kind, name in entity)
    return (31 + sum(parts)) & 0xFFFFFFFF


def component(kind: str, name: str | None) -> ComponentData:
    match = ANY if name is None else EXACT if name else OF_DEFAULT
    return ComponentData(QUOTA_TYPES[kind], match, name or None)


def entity_text(kind: str, name: str | None) -> str:
    return f"the default {kind}" if name is None else f"{kind} '{name}'"


def describe_credentials(cluster: Cluster, users: Sequence[str]) -> None:
    request = DescribeUserScramCredentialsRequest(users=[UserName(each) for each in users] or None)
    answer = cluster.ask(request, DescribeUserScramCredentialsResponse)
    check(answer.error_code, answer.error_message)
    names = {number: name for name, number in MECHANISMS.items()}
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        check(result.error_code, result.error_message)
        infos = ", ".join(
            f"{names.get(each.mechanism, 'UNKNOWN')}=iterations={each.iterations}" for each in result.credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{result.user}' are {infos}")


def change(cluster: Cluster, entities: Entities, wanted: Changes) -> None:
    check_keys(entities, wanted)
    if any(key in MECHANISMS for key in wanted.keys):
        change_credentials(cluster, entities.names[0], wanted)
    else:
        change_quotas(cluster, entities, wanted)


def check_keys(entities: Entities, wanted: Changes) -> None:
    if entities.type == IPS:
        unknown = [key for key in wanted.keys if key not in IP_KEYS]
        if unknown:
            raise UsageError(
                f"Only connection quota configs can be added for '{IPS}' {_ONLY}."
                f" Unexpected config names: {','.join(unknown)}"
            )
        return
    has_client = CLIENTS in entities.types
    fine = KEYS if has_client else (*KEYS, *MECHANISMS)
    what = "quota configs" if has_client else "quota and SCRAM credential configs"
    for verb, keys in (("added", wanted.added), ("deleted", wanted.deleted)):
        unknown = [key for key in keys if key not in fine]
        if unknown:
            kind = CLIENTS if has_client else USERS
            raise UsageError(
                f"Only {what} can be {verb} for '{kind}' {_ONLY}. Unexpected config names: {', '.join(unknown)}"
            )
    check_credentials(entities, wanted)


def check_credentials(entities: Entities, wanted: Changes) -> None:
    if not any(key in MECHANISMS for key in wanted.keys):
        return
    if DEFAULT in entities.names:
        raise UsageError(
            f"The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials {_ONLY}."
        )
    if any(key in KEYS for key in wanted.keys):
        raise UsageError(f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' {_ONLY}.")


def change_quotas(cluster: Cluster, entities: Entities, wanted: Changes) -> None:
    entity = [
        EntityData(QUOTA_TYPES[kind], name or None) for kind, name in zip(entities.types, entities.names, strict=True)
    ]
    ops = [OpData(key, quota(key, value)) for key, value in wanted.added.items()]
    ops += [OpData(key, remove=True) for key in wanted.deleted]
    answer = cluster.ask_controller(
        AlterClientQuotasRequest(entries=[EntryData(entity, ops)]),
        AlterClientQuotasResponse,
        codes=lambda found: [each.error_code for each in found.entries],
    )
    for each in answer.entries:
        check(each.error_code, each.error_message)


def quota(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"Cannot parse quota configuration value for {key}: {value}") from None


def change_credentials(cluster: Cluster, user: str, wanted: Changes) -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(user, MECHANISMS[key]) for key in wanted.deleted],
        upsertions=credentials(user, wanted.added),
    )
    answer = cluster.ask_controller(
        request, AlterUserScramCredentialsResponse, codes=lambda found: [each.error_code for each in found.results]
    )
    for each in answer.results:
        if each.error_code:
            raise CommandFailed(each.error_message or f"error {each.error_code}")


def credentials(user: str, wanted: Mapping[str, str]) -> list[ScramCredentialUpsertion]:
    from moldau.security.sasl.scram.credential import ScramMechanism
    from moldau.security.sasl.scram.keys import salted_password

    made = []
    for name, written in wanted.items():
        found = _CREDENTIAL.fullmatch(written)
        if found is None:
            raise UsageError(
                f"Invalid credential property {name}: expected [password=...] or [iterations=8192,password=...]"
            )
        if not found[2]:
            raise UsageError(f"Password must not be empty for {name}")
        said = found[1] or "-1"
        rounds = ITERATIONS_MIN if said in ("-1", "-") else int(said)
        if rounds < ITERATIONS_MIN:
            raise UsageError(f"Iterations {rounds} is less than the minimum {ITERATIONS_MIN} required for {name}")
        mechanism, salt = ScramMechanism(MECHANISMS[name]), os.urandom(SALT_BYTES)
        salted = salted_password(mechanism, found[2], salt, rounds)
        made.append(ScramCredentialUpsertion(user, mechanism, rounds, salt, salted))
    return made
