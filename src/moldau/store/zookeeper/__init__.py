"""The metadata store of many machines: a ZooKeeper ensemble, reached through kazoo. Import it where one is named."""

from moldau.store.zookeeper.opening import open_zookeeper

__all__ = ["open_zookeeper"]
