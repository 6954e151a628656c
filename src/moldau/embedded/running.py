"""`moldau.run()`: one broker, or several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, overload

from moldau.embedded.broker import EmbeddedBroker, run_broker
from moldau.embedded.cluster import EmbeddedCluster, run_cluster
from moldau.embedded.process import START_S_MAX, BrokerFailed

# Of a registry: Kafka's group protocol waits three seconds for others before it has the first leader.
SERVICE_START_S_MAX = 60.0


@overload
def run(
    *,
    overrides: Mapping[str, object] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    properties: str | os.PathLike[str] | None = None,
    timeout_s: float = START_S_MAX,
    brokers: Literal[None] = None,
    secure: bool = False,
    metrics: bool = False,
    registry: bool = False,
    rest: bool = False,
) -> EmbeddedBroker: ...


@overload
def run(
    *,
    overrides: Mapping[str, object] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    properties: str | os.PathLike[str] | None = None,
    timeout_s: float = START_S_MAX,
    brokers: int,
    secure: bool = False,
    metrics: bool = False,
    registry: bool = False,
    rest: bool = False,
) -> EmbeddedCluster: ...


def run(
    *,
    overrides: Mapping[str, object] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    properties: str | os.PathLike[str] | None = None,
    timeout_s: float = START_S_MAX,
    brokers: int | None = None,
    secure: bool = False,
    metrics: bool = False,
    registry: bool = False,
    rest: bool = False,
) -> EmbeddedBroker | EmbeddedCluster:
    """Start a broker and return once it answers clients; leaving the `with` block, or `stop()`, ends it.

    `overrides` holds Kafka's keys, such as `{"num.partitions": 3}`; an unknown key is a ValueError. `properties` is a
    server.properties file. Without `data_dir` the data is in a temporary folder, which is removed with the broker; a
    folder that is given is kept. Raises BrokerFailed when the broker does not start within `timeout_s`.

    With `brokers` it is a cluster of so many, each in a process of its own, on free ports or on `port` and the next.

    With `secure` it listens with SASL_SSL alone and has an authorizer; `clients` gives the admin's settings for clients
    of each kind, and `add_user` other users.

    With `metrics` each broker answers at its `metrics_url` for Prometheus.

    With `registry` a schema registry stands beside it, with `rest` a REST proxy: `broker.registry.url` and
    `broker.rest.url`. They need the extra `moldau[registry]`.
    """
    if metrics:
        overrides = {"metrics.listener": 0, **(overrides or {})}
    names = [name for name, wanted in (("registry", registry), ("rest", rest)) if wanted]
    if names:
        check_services()
    begin = run_broker if brokers is None else partial(run_cluster, brokers)
    running: EmbeddedBroker | EmbeddedCluster = begin(
        overrides=overrides,
        data_dir=data_dir,
        host=host,
        port=port,
        properties=properties,
        timeout_s=timeout_s,
        secure=secure,
    )
    add_services(running, names, host=host, timeout_s=timeout_s)
    return running


def add_services(
    running: EmbeddedBroker | EmbeddedCluster, names: Sequence[str], *, host: str, timeout_s: float
) -> None:
    """If one does not start, nothing goes on."""
    try:
        for name in names:
            running.services.start(name, running.clients, host=host, timeout_s=max(timeout_s, SERVICE_START_S_MAX))
    except BaseException:
        running.__exit__(None, None, None)
        raise


def check_services() -> None:
    """Before anything starts. Raises BrokerFailed."""
    from moldau.web.extra import is_installed

    if not is_installed():
        raise BrokerFailed("a registry and a REST proxy need: pip install 'moldau[registry]'")
