"""How each cluster of a monitor is reached: by its own settings, or as all other tools reach theirs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.connection import check_servers, client_settings, read_properties
from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.java_settings import for_librdkafka
from moldau.cli.wire import cluster_of
from moldau.client.cluster import Cluster

if TYPE_CHECKING:
    from moldau.monitor.settings import ClusterSettings

CLIENT_ID = "moldau-monitor"

Opener = Callable[[], Cluster]


def opener(cluster: ClusterSettings, options: Namespace) -> Opener:
    """Nothing is connected here, but what is wrong with the settings is told at once."""
    timeout_s = float(cluster.connection.get("timeout") or options.timeout)
    properties = client_properties(cluster, options)
    cluster_of(properties, timeout_s=timeout_s).close()

    def make() -> Cluster:
        try:
            return cluster_of(properties, timeout_s=timeout_s)
        except CommandFailed as wrong:  # a certificate that was there at the start
            raise OSError(str(wrong)) from None

    return make


def client_properties(cluster: ClusterSettings, options: Namespace) -> dict[str, str]:
    """A cluster of the file has nothing of the profile that other tools use here, unless it names one."""
    said = cluster.connection
    if not said:
        given = Namespace(**{**vars(options), "properties": [f"client.id={CLIENT_ID}", *options.properties]})
        return client_settings(given)
    folder = Path(options.config).parent
    file = said.get("command-config")
    properties = [f"{name}={value}" for name, value in cluster.client.items()]
    if said.get("profile"):
        named = Namespace(
            profile=said["profile"],
            command_config=str(folder / file) if file else None,
            bootstrap_server=said.get("bootstrap-server"),
            properties=[f"client.id={CLIENT_ID}", *properties],
        )
        return client_settings(named)
    where = f"{options.config}: clusters.{cluster.name}"
    if not said.get("bootstrap-server"):
        raise UsageError(f"{where}: expected bootstrap-server, or a profile")
    found = read_properties(str(folder / file)) if file else {}
    found = {"client.id": CLIENT_ID, **for_librdkafka({**found, **cluster.client})}
    found["bootstrap.servers"] = said["bootstrap-server"]
    check_servers(found["bootstrap.servers"])
    return found
