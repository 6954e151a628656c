"""A broker from Python: `with moldau.run() as broker:` starts one in a process of its own, on a free port."""

from moldau.embedded.broker import EmbeddedBroker, run
from moldau.embedded.process import Address, BrokerFailed
from moldau.embedded.requests import RequestFailed

__all__ = ["Address", "BrokerFailed", "EmbeddedBroker", "RequestFailed", "run"]
