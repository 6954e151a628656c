"""A broker from Python: `with moldau.run() as broker:` starts one in a process of its own, on a free port."""

from moldau.embedded.broker import EmbeddedBroker
from moldau.embedded.cluster import EmbeddedCluster
from moldau.embedded.process import Address, BrokerFailed
from moldau.embedded.requests import RequestFailed
from moldau.embedded.running import run
from moldau.embedded.security import ClientSettings

__all__ = ["Address", "BrokerFailed", "ClientSettings", "EmbeddedBroker", "EmbeddedCluster", "RequestFailed", "run"]
