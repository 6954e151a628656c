"""The metadata store in a tree of nodes that a service for consensus keeps: what ZooKeeper and etcd have in common."""
