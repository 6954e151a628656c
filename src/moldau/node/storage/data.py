"""What a broker has from its starts before: its log directories, and the store of the cluster's metadata."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from moldau.core.config.broker import BrokerConfig
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.node.storage.log_directories import open_log_dirs, open_metadata
from moldau.store.store import MetadataStore


class Data(NamedTuple):
    store: MetadataStore
    directories: LogDirectories
    metadata: str
    """Where the metadata is, for people."""


async def open_data(
    config: BrokerConfig,
    running: AsyncExitStack,
    stop: asyncio.Event,
    *,
    accept_lost_log_dirs: bool,
    cluster_id: str | None,
    shared: Path | None,
) -> Data:
    """`shared` is the folder of the brokers of one machine; `cluster_id` is for a cluster that begins now."""
    _refuse_folder_of_several(config)
    if config.metadata_service is not None:
        # Imported here because a broker of one machine needs none of it.
        from moldau.node.cluster.metadata_service import open_log_dirs_of, open_service

        service = config.metadata_service
        store = await open_service(service, stop)
        running.push_async_callback(store.close)
        directories = await open_log_dirs_of(
            config,
            store,
            accept_lost_log_dirs=accept_lost_log_dirs,
            cluster_id=cluster_id,
            beside=() if shared is None else (shared,),
        )
        running.callback(directories.end)
        return Data(store, directories, str(service))
    directories = await open_log_dirs(
        config, accept_lost_log_dirs=accept_lost_log_dirs, cluster_id=cluster_id, shared=shared
    )
    running.callback(directories.end)
    opened = await open_metadata(config, directories.paths, shared)
    running.push_async_callback(opened.close)
    return Data(opened, directories, str(opened.path.resolve()))


def _refuse_folder_of_several(config: BrokerConfig) -> None:
    """Before anything is written there: one broker's meta.properties would claim the folders of all for itself."""
    for log_dir in config.log_dirs:
        if not any(Path(log_dir).glob("broker-*/meta.properties")):
            continue
        # Imported here because a broker alone needs none of it.
        from moldau.embedded.members import broker_ids_of

        if broker_ids := broker_ids_of(Path(log_dir)):
            folders = ", ".join(f"broker-{each}" for each in broker_ids)
            raise UnusableDirectory(
                f"{log_dir} has the data of several brokers ({folders}); start them with --brokers {len(broker_ids)}"
            )
