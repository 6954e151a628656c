"""What a task on an executor can tell about where it runs.

It travels by value and imports Python's own library alone: an executor that has nothing of this package tells so too.
"""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata

CONNECT_S_MAX = 5.0
ANSWER_S_MAX = 10.0


def probe(
    packages: Mapping[str, str], clusters: Sequence[Mapping[str, str]], registries: Sequence[tuple[str, int]] = ()
) -> str:
    """`packages` by their versions at the driver, `clusters` by the settings of their clients."""
    lacks = [*missing_packages(packages), *(each for one in clusters for each in unreachable_brokers(one))]
    lacks += unreachable_registries(registries)
    told = {"host": socket.gethostname(), "folder": os.getcwd(), "python": platform.python_version(), "lacks": lacks}
    return json.dumps(told)


def missing_packages(packages: Mapping[str, str]) -> Iterator[str]:
    for name, version in packages.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield f"the package {name} {version}"
            continue
        # Both ends speak to each other in this package's own words; others may differ in version.
        if name == "moldau" and found != version:
            yield f"moldau {version}: it has {found}"


def unreachable_brokers(settings: Mapping[str, str]) -> Iterator[str]:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return  # said as a package
    try:
        client = AdminClient({**settings, "log_level": 0, "error_cb": lambda _: None})
        brokers = client.list_topics(timeout=ANSWER_S_MAX).brokers.values()
    except KafkaException as wrong:
        yield f"a way to the brokers at {settings['bootstrap.servers']}: {wrong.args[0].str()}"
        return
    for broker in brokers:
        try:
            socket.create_connection((broker.host, broker.port), CONNECT_S_MAX).close()
        except OSError as wrong:
            where = f"broker {broker.id} at {broker.host}:{broker.port}, as it advertises itself"
            yield f"a way to {where}: {wrong.strerror or wrong}"


def unreachable_registries(registries: Sequence[tuple[str, int]]) -> Iterator[str]:
    for host, port in registries:
        try:
            socket.create_connection((host, port), CONNECT_S_MAX).close()
        except OSError as wrong:
            yield f"a way to the schema registry at {host}:{port}: {wrong.strerror or wrong}"
