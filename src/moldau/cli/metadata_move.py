"""`moldau metadata-move`: the metadata of one machine's brokers goes into ZooKeeper or etcd, for others to join."""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

from moldau.cli.failures import OK, CommandFailed
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.store.moving import Moved, move
from moldau.store.sqlite import FILE_NAME, LOCATION_FILE, SqliteStore
from moldau.store.store import StoreError

EXAMPLES = """\
examples:
  moldau metadata-move --data-dir ./moldau-data --zookeeper-connect h1:2181,h2:2181,h3:2181/moldau

Stop all brokers first, and start them with the same zookeeper.connect (or etcd.connect) afterwards. A move that was
interrupted goes on where it ended when it is started again. The file that was moved is kept beside the data, with
.moved behind its name.
"""
MOVED_SUFFIX = ".moved"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    path = Path(options.data_dir) / FILE_NAME
    if not path.is_file():
        raise CommandFailed(f"there is no metadata in {options.data_dir}: {path} is missing")
    service, connect = (
        ("ZooKeeper", options.zookeeper_connect) if options.zookeeper_connect else ("etcd", options.etcd_connect)
    )
    try:
        with locked(path.parent):
            moved = asyncio.run(run(path, service, connect))
            set_aside(path, f"{service} at {connect}")
    except StoreError as wrong:
        raise CommandFailed(str(wrong)) from None
    except UnusableDirectory as wrong:
        raise CommandFailed(f"a broker is running; stop all brokers first: {wrong}") from None
    print(f"metadata up to position {moved.position} is in {service}, {moved.entries} entries were written now")
    print(f"start the brokers with {service.lower()}.connect={connect}")
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(
        prog="moldau metadata-move",
        description="Move the metadata of the brokers of this machine into ZooKeeper or etcd.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", required=True, metavar="DIR", help="the log directory that has the metadata")
    service = parser.add_mutually_exclusive_group(required=True)
    for name in ("zookeeper", "etcd"):
        where = "host:port[,host:port...][/chroot], without a cluster"
        service.add_argument(f"--{name}-connect", metavar="HOSTS", help=where)
    return parser.parse_args(arguments)


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """A broker that started meanwhile would go on with the file that is set aside, and a cluster of its own."""
    with ExitStack() as held:
        for folder in (data_dir, *(each for each in sorted(data_dir.glob("broker-*")) if each.is_dir())):
            held.callback(DirectoryLock(os.fspath(folder)).release)
        yield


async def run(path: Path, service: str, connect: str) -> Moved:
    from moldau.core.clock import SystemClock

    if service == "etcd":
        from moldau.store.etcd import open_etcd as open_store
    else:
        from moldau.store.zookeeper import open_zookeeper as open_store

    async with AsyncExitStack() as opened:
        target = await open_store(connect, SystemClock())
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
