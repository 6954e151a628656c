"""`moldau features`: the features of a cluster, their levels, and other levels for them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import version

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import open_bootstrap
from moldau.cli.kafka.feature_levels import (
    FEATURES,
    default_level,
    dependencies,
    metadata_level,
)
from moldau.cli.wire import refusal
from moldau.client.cluster import check
from moldau.core.errors import ErrorCode
from moldau.core.metadata_versions import METADATA, metadata_name
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from moldau.wire.messages.update_features import FeatureUpdateKey

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
SHORT_MAX = 2**15 - 1


def describe_features(options: Namespace) -> int:
    request = ApiVersionsRequest(client_software_name="moldau", client_software_version=version("moldau"))
    with open_bootstrap(options) as client:
        if options.node_id is None:
            found = client.ask(request, ApiVersionsResponse)
        else:
            found = client.ask_broker(options.node_id, request, ApiVersionsResponse)
    check(found.error_code)
    levels = {each.name: each.max_version_level for each in found.finalized_features}
    epoch = "-" if found.finalized_features_epoch < 0 else str(found.finalized_features_epoch)
    for each in sorted(found.supported_features, key=lambda feature: feature.name):
        oldest, newest, level = (
            shown_level(each.name, number) for number in (each.min_version, each.max_version, levels.get(each.name, 0))
        )
        print(
            f"Feature: {each.name:<40}  SupportedMinVersion: {oldest:<15}  SupportedMaxVersion: {newest:<15}"
            f"  FinalizedVersionLevel: {level:<15}  Epoch: {epoch}"
        )
    return OK


def shown_level(feature: str, level: int) -> str:
    if feature != METADATA:
        return str(level)
    return metadata_name(level) or f"UNKNOWN {level}"


def change_features(options: Namespace) -> int:
    updates = _updates(options)
    if not updates:
        raise UsageError(f"You must specify at least one feature to {options.op}")
    kind = UPGRADE if options.op == "upgrade" else UNSAFE_DOWNGRADE if options.unsafe else SAFE_DOWNGRADE
    rows = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level in updates.items()]
    request = UpdateFeaturesRequest(feature_updates=rows, validate_only=options.dry_run)
    with open_bootstrap(options) as client:
        answer = client.ask_controller(request, UpdateFeaturesResponse, codes=lambda found: [found.error_code])
    own = {each.feature: (each.error_code, each.error_message) for each in answer.results}
    failed = 0
    for name, level in sorted(updates.items()):
        # One error for all of them is what newer brokers answer.
        code, message = own.get(name) or (answer.error_code, answer.error_message)
        failed += code != ErrorCode.NONE
        print(_outcome(options, name, level, None if code == ErrorCode.NONE else refusal(code, message)))
    if failed:
        raise CommandFailed(f"{failed} out of {len(updates)} operation(s) failed.")
    return OK


def _outcome(options: Namespace, name: str, level: int, wrong: str | None) -> str:
    is_off = options.op == "disable"
    if wrong is not None:
        helper = "Can not" if options.dry_run else "Could not"
        return f"{helper} {options.op} {name}{'' if is_off else f' to {level}'}. {wrong}"
    verb = "can be" if options.dry_run else "was"
    return f"{name} {verb} {'disabled' if is_off else f'{options.op}d to {level}'}."


def _updates(options: Namespace) -> dict[str, int]:
    if options.release_version is not None:
        if options.metadata is not None or options.feature:
            raise UsageError("Can not specify `release-version` with other feature flags.")
        level = metadata_level(options.release_version)
        found = {METADATA: level}
        for feature in FEATURES:
            own = default_level(feature, level)
            if options.op != "upgrade" or own > 0:
                found[feature] = own
        return found
    updates: dict[str, int] = {}
    if options.metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        updates[METADATA] = metadata_level(options.metadata)
    pairs = [(each, 0) for each in options.feature] if options.op == "disable" else _levels(options.feature)
    for name, level in pairs:
        if name in updates and (name != METADATA or options.metadata is None):
            raise UsageError(f"Feature {name} was specified more than once.")
        updates[name] = level
    return updates


def _levels(texts: Sequence[str]) -> list[tuple[str, int]]:
    found = []
    for text in texts:
        name, equals, level = (each.strip() for each in text.partition("="))
        if not equals:
            raise UsageError(f"Can't parse feature=level string {text}: equals sign not found.")
        if not level.lstrip("-+").isdecimal() or abs(int(level)) > SHORT_MAX:
            raise UsageError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
        found.append((name, int(level)))
    return found


def print_mapping(options: Namespace) -> int:
    level = metadata_level(options.release_version)
    print(f"{METADATA}={level} ({options.release_version or metadata_name(level)})")
    for feature in FEATURES:
        print(f"{feature}={default_level(feature, level)}")
    return OK


def print_dependencies(options: Namespace) -> int:
    for name, level in _levels(options.feature):
        if name == METADATA:
            known = metadata_name(level)
            if known is None:
                raise UsageError(f"Unknown metadata.version {level}")
            print(f"{name}={level} ({known}) has no dependencies.")
            continue
        needed = dependencies(name, level)
        if not needed:
            print(f"{name}={level} has no dependencies.")
            continue
        print(f"{name}={level} requires:")
        for other, least in needed.items():
            print(f"    {other}={least}{f' ({metadata_name(least)})' if other == METADATA else ''}")
    return OK
