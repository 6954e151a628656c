"""`moldau metadata-move`: the metadata of one machine's brokers goes into ZooKeeper or etcd, for others to join."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

from moldau.cli.failures import OK, CommandFailed
from moldau.core.config.definitions import ConfigError
from moldau.core.config.load import load_config
from moldau.core.config.metadata_store import MetadataService
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.store.moving import Moved, move
from moldau.store.service_security import service_tls, zookeeper_security
from moldau.store.sqlite import FILE_NAME, LOCATION_FILE, SqliteStore
from moldau.store.store import StoreError

MOVED_SUFFIX = ".moved"


def run(options: Namespace) -> int:
    path = Path(options.data_dir) / FILE_NAME
    if not path.is_file():
        raise CommandFailed(f"there is no metadata in {options.data_dir}: {path} is missing")
    service, connect = (
        ("ZooKeeper", options.zookeeper_connect) if options.zookeeper_connect else ("etcd", options.etcd_connect)
    )
    try:
        with locked(path.parent):
            moved = asyncio.run(move_all(path, described(service, connect, options.properties)))
            set_aside(path, f"{service} at {connect}")
    except (StoreError, ConfigError) as wrong:
        raise CommandFailed(str(wrong)) from None
    except UnusableDirectory as wrong:
        raise CommandFailed(f"a broker is running; stop all brokers first: {wrong}") from None
    print(f"metadata up to position {moved.position} is in {service}, {moved.entries} entries were written now")
    print(f"start the brokers with {service.lower()}.connect={connect}")
    return OK


def described(service: str, connect: str, properties: str | None) -> MetadataService:
    """As brokers with these properties would reach it."""
    file = None if properties is None else Path(properties)
    found = load_config(file, {}, {f"{service.lower()}.connect": connect}).metadata_service
    assert found is not None, "it was named"
    return found


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """A broker that started meanwhile would go on with the file that is set aside, and a cluster of its own."""
    with ExitStack() as held:
        for folder in (data_dir, *(each for each in sorted(data_dir.glob("broker-*")) if each.is_dir())):
            held.callback(DirectoryLock(os.fspath(folder)).release)
        yield


async def move_all(path: Path, service: MetadataService) -> Moved:
    from moldau.core.clock import SystemClock

    if service.kind == "etcd":
        from moldau.store.etcd import open_etcd

        opening = open_etcd(service.connect, SystemClock(), tls=service_tls(service))
    else:
        from moldau.store.zookeeper import open_zookeeper

        opening = open_zookeeper(service.connect, SystemClock(), security=zookeeper_security(service))
    async with AsyncExitStack() as opened:
        target = await opening
        opened.push_async_callback(target.close)
        source = await SqliteStore.open(path)
        opened.push_async_callback(source.close)
        return await move(source, target)


def set_aside(path: Path, where: str) -> None:
    """A broker that is started without the service would go on with what the metadata was: it must find none."""
    others = (folder / LOCATION_FILE for folder in path.parent.glob("broker-*") if (folder / LOCATION_FILE).exists())
    for noted in (path.with_name(LOCATION_FILE), *others):
        noted.write_text(f"{where}\n")
    path.rename(path.with_name(path.name + MOVED_SUFFIX))
