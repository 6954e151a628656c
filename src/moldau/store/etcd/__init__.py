"""The metadata store of many machines without a JVM: an etcd cluster, reached through its JSON gateway."""

from moldau.store.etcd.opening import open_etcd

__all__ = ["open_etcd"]
