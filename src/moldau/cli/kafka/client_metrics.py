"""`moldau client-metrics`: which clients push which of their own metrics to the brokers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from moldau.cli.failures import OK
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.cli.kafka.commands.client_metrics import SETTINGS
from moldau.cli.kafka.configs.resources import configured
from moldau.cli.kafka.java import hash_order, text_hash
from moldau.cli.topics.configs import Kind, alter, deleted, entries, set_to
from moldau.client.cluster import Cluster
from moldau.core.ids import format_uuid, random_uuid


def run(options: Namespace) -> int:
    action = {"alter": change, "delete": delete, "describe": describe, "list": show_names}[options.action]
    with open_patiently(options) as cluster:
        action(cluster, options)
    return OK


def change(cluster: Cluster, options: Namespace) -> None:
    name = format_uuid(random_uuid()) if options.generate_name else options.name
    wanted = {
        SETTINGS[each]: value
        for each, value in (
            ("interval", options.interval),
            ("metrics", _joined(options.metrics)),
            ("match", _joined(options.match)),
        )
        if value is not None
    }
    alter(
        cluster, Kind.CLIENT_METRICS, name, [set_to(*each) if each[1] else deleted(each[0]) for each in wanted.items()]
    )
    print(f"Altered client metrics config for {name}.")


def _joined(given: Sequence[str] | None) -> str | None:
    """Of an option that may come several times, with several values each."""
    return None if given is None else ",".join(one for each in given for one in each.split(",") if one)


def delete(cluster: Cluster, options: Namespace) -> None:
    known = entries(cluster, Kind.CLIENT_METRICS, options.name)
    alter(cluster, Kind.CLIENT_METRICS, options.name, [deleted(each.name) for each in known])
    print(f"Deleted client metrics config for {options.name}.")


def describe(cluster: Cluster, options: Namespace) -> None:
    names = configured(cluster, Kind.CLIENT_METRICS)
    if options.name is not None and options.name not in names:
        print(f"The client metric resource {options.name} doesn't exist and doesn't have dynamic config.")
        return
    for name in names if options.name is None else [options.name]:
        print(f"Client metrics configs for {name} are:")
        values = {each.name: each.value for each in entries(cluster, Kind.CLIENT_METRICS, name)}
        for key in hash_order(values, text_hash):
            print(f"  {key}={values[key]}")


def show_names(cluster: Cluster, _: Namespace) -> None:
    print("\n".join(configured(cluster, Kind.CLIENT_METRICS)))
