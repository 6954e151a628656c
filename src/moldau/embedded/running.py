"""`moldau.run()`: one broker, or several."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, overload

from moldau.embedded.broker import EmbeddedBroker, run_broker
from moldau.embedded.cluster import EmbeddedCluster, run_cluster
from moldau.embedded.process import START_S_MAX


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
) -> EmbeddedBroker | EmbeddedCluster:
    """Start a broker and return once it answers clients; leaving the `with` block, or `stop()`, ends it.

    `overrides` holds Kafka's keys, such as `{"num.partitions": 3}`; an unknown key is a ValueError. `properties` is a
    server.properties file. Without `data_dir` the data is in a temporary folder, which is removed with the broker; a
    folder that is given is kept. Raises BrokerFailed when the broker does not start within `timeout_s`.

    With `brokers` it is a cluster of so many, each in a process of its own, on free ports or on `port` and the next.

    With `secure` it listens with SASL_SSL alone and has an authorizer; `clients` gives the admin's settings for clients
    of each kind, and `add_user` other users.
    """
    if brokers is not None:
        return run_cluster(
            brokers,
            overrides=overrides,
            data_dir=data_dir,
            host=host,
            port=port,
            properties=properties,
            timeout_s=timeout_s,
            secure=secure,
        )
    return run_broker(
        overrides=overrides,
        data_dir=data_dir,
        host=host,
        port=port,
        properties=properties,
        timeout_s=timeout_s,
        secure=secure,
    )
