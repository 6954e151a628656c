"""A cluster whose metadata is in ZooKeeper or etcd: how its store is opened, and whose log directories belong to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.broker.topics.startup import GivenUp
from moldau.controller.runtime import Controller
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.metadata_store import MetadataService
from moldau.core.ids import format_uuid, random_uuid
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory, read_meta_properties
from moldau.log.files import read_whole, replace
from moldau.store.sqlite import FILE_NAME as METADATA_FILE
from moldau.store.sqlite import LOCATION_FILE
from moldau.store.store import StoreError
from moldau.store.tree.connect_string import EXPECTED, ConnectString, InvalidConnectString

if TYPE_CHECKING:
    from moldau.store.tree.store import TreeStore

LOGGER = logging.getLogger(__name__)

PATIENCE_S = 1.0  # a service that answers takes some milliseconds; after this long whoever waits wants to know for what


async def open_service(service: MetadataService, stop: asyncio.Event) -> TreeStore:
    """Tried until the service's connection time-out. GivenUp when the broker is to end before."""
    opening = asyncio.ensure_future(_opening(service))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait((opening, stopping), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            LOGGER.warning("no answer from %s yet; trying for %g s", service, service.connection_timeout_ms / 1000)
            await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise GivenUp
        return opening.result()
    finally:
        stopping.cancel()
        if opening.cancel():
            await asyncio.wait((opening,))


def _opening(service: MetadataService) -> Coroutine[Any, Any, TreeStore]:
    """The client's library is imported here: no other broker needs it."""
    from moldau.store.service_security import service_tls, zookeeper_security

    if service.kind == "etcd":
        from moldau.store.etcd import open_etcd

        open_store = partial(open_etcd, tls=service_tls(service))
    else:
        from moldau.store.zookeeper import open_zookeeper

        open_store = partial(open_zookeeper, security=zookeeper_security(service))
    return open_store(
        service.connect,
        SystemClock(),
        session_timeout_ms=service.session_timeout_ms,
        connection_timeout_ms=service.connection_timeout_ms,
    )


def check_service(service: MetadataService) -> None:
    """ConfigError for a text that names no servers, and for what protects them if nothing can be made of it."""
    from moldau.store.service_security import service_tls, zookeeper_security

    if service.kind == "etcd":
        service_tls(service)
    else:
        zookeeper_security(service)
    try:
        ConnectString.parse(service.connect, key=service.key, port=1)
    except InvalidConnectString:
        raise ConfigError(service.key, service.connect, f"expected {EXPECTED}") from None


async def open_log_dirs_of(
    config: BrokerConfig,
    store: TreeStore,
    *,
    accept_lost_log_dirs: bool,
    cluster_id: str | None,
    beside: Sequence[Path] = (),
) -> LogDirectories:
    """Log directories of the cluster that the store has. `cluster_id` is for one that begins now.

    `beside` are other folders in which this machine's metadata could have been before.
    """
    service = config.metadata_service
    assert service is not None, "its store was opened"
    log_dirs = [Path(each) for each in config.log_dirs]
    _refuse_own_metadata([*log_dirs, *beside], service)
    known = await Controller.stored_cluster_id(store)
    if not known and not accept_lost_log_dirs:
        _refuse_data_without_metadata(log_dirs, service)
    # Of brokers that start together, the first to name the cluster does so for all.
    named = await store.name_cluster(known or _noted_cluster_id(log_dirs) or cluster_id or format_uuid(random_uuid()))
    if known not in ("", named):
        raise StoreError(f"the metadata in {service} belongs to cluster {known}, and its cluster id is {named}")
    opened = LogDirectories.open(log_dirs, node_id=config.node_id, cluster_id=named)
    _note_service(service, log_dirs)
    return opened


def _noted_cluster_id(log_dirs: Sequence[Path]) -> str | None:
    metas = [meta for log_dir in log_dirs if (meta := read_meta_properties(str(log_dir))) is not None]
    return metas[0].cluster_id if metas else None


def _note_service(service: MetadataService, log_dirs: Sequence[Path]) -> None:
    """A broker that is started without the service must not begin a cluster of its own with this data."""
    text = f"{service}\n".encode()
    for log_dir in log_dirs:
        path = f"{log_dir}/{LOCATION_FILE}"
        if read_whole(path) != text:
            replace(path, text, sync=True)


def _refuse_own_metadata(folders: Sequence[Path], service: MetadataService) -> None:
    for folder in folders:
        if (folder / METADATA_FILE).exists():
            raise UnusableDirectory(
                f"{folder / METADATA_FILE} is this data's metadata, and {service.key} is set; move it there with "
                f"moldau metadata-move --data-dir {folder} --{service.key.replace('.', '-')} '{service.connect}', "
                f"or remove {service.key}"
            )


def _refuse_data_without_metadata(log_dirs: Sequence[Path], service: MetadataService) -> None:
    for log_dir in log_dirs:
        noted = (read_whole(f"{log_dir}/{LOCATION_FILE}") or b"").decode("utf-8", "replace").strip()
        is_used = any(log_dir.glob("*-*/partition.metadata"))
        if is_used or noted not in ("", str(service)):
            where = f"; it was {noted}" if noted else ""
            raise UnusableDirectory(
                f"{log_dir} has data, and {service} has no metadata of it{where}; correct {service.key}, or lose the "
                "data for good with --accept-lost-log-dirs"
            )
