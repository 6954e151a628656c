"""Who is a broker of this cluster, for the requests that nobody else may make: by where and as whom it comes.

An envelope says whose request is in it, so that whoever may send one can be anybody. Each broker registers by which
listener it asks others, and as which user. That counts, and not this broker's own configuration, because brokers
go over to another listener or user one after the other. What is not known is not asked for: on a listener without
logins by name anybody is taken for a broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from moldau.broker.api import Api
from moldau.core.config.definitions import ConfigError
from moldau.core.repeated_line import RepeatedLine

if TYPE_CHECKING:
    from moldau.broker.context import Context, Peer, Services
    from moldau.controller.image import BrokerImage, ClusterImage
    from moldau.core.config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)

Principals: TypeAlias = "Set[str] | None"
"""Those that brokers have on a listener; None for anybody."""
NOBODY: Principals = frozenset()


class FellowBrokers:
    """What is known of the image's brokers, looked at again when they, or their configurations, have changed."""

    __slots__ = ("_admitted", "_principal_of", "_refused", "_seen", "_services")

    def __init__(self, services: Services, principal_of: Callable[[BrokerConfig], str]) -> None:
        """`principal_of` gives the principal that a broker with a configuration has for others; empty if unknown."""
        self._services = services
        self._principal_of = principal_of
        self._seen: tuple[object, object] = (None, None)
        self._admitted: Mapping[str, Principals] = {}
        self._refused = RepeatedLine(LOGGER, logging.WARNING)

    def guarding(self, api: Api) -> Api:
        """The same API, answered to brokers alone."""
        return replace(api, call=lambda request, context: self._answer(api, request, context))

    def includes(self, peer: Peer) -> bool:
        image = self._services.controller.image
        if self._seen[0] is not image.brokers or self._seen[1] is not image.broker_configs:
            self._seen = image.brokers, image.broker_configs
            self._admitted = self._principals(image)
        admitted = self._admitted.get(peer.listener_name, NOBODY)
        return admitted is None or str(peer.principal) in admitted

    def _answer(self, api: Api, request: Any, context: Context) -> Any:
        if self.includes(context.peer):
            return api.call(request, context)
        from moldau.broker.requests.refusals import (
            refusal,  # which a cluster without an authorizer has no other use for
        )

        peer = context.peer
        self._refused.say(
            f"refusing {api.key.name} to {peer.principal} at {peer} on listener {peer.listener_name}: "
            "it is not how brokers of this cluster come"
        )
        return refusal(api.key, request, context.version)

    def _principals(self, image: ClusterImage) -> dict[str, Principals]:
        """By listener of this broker."""
        found: dict[str, Principals] = {}
        for broker in self._brokers(image):
            for name in self._listeners_of(broker):
                before, more = found.get(name, NOBODY), self._known_as(broker, name, image)
                found[name] = None if before is None or more is None else before | more
        return found

    def _brokers(self, image: ClusterImage) -> Iterator[BrokerImage]:
        """This one tells of itself before the cluster does."""
        itself = self._services.itself
        if itself is not None:
            yield itself
        for broker in image.brokers.values():
            # Those that are gone, and were of a version that did not tell, would leave the door open for ever.
            if (itself is None or broker.id != itself.id) and (broker.inter_broker_listener or not broker.fenced):
                yield broker

    def _listeners_of(self, broker: BrokerImage) -> list[str]:
        """The listeners of ours by which a broker asks, as `Peers.endpoint_of` there finds them."""
        ours = {each.name: each.security for each in self._services.config.listeners}
        name = broker.inter_broker_listener
        if not name:
            return list(ours)
        if name in ours:
            return [name]
        endpoint = broker.endpoints.get(name)
        return [each for each, security in ours.items() if endpoint is not None and security == endpoint.security]

    def _known_as(self, broker: BrokerImage, listener: str, image: ClusterImage) -> Principals:
        """As it told when it started, and by what was set for it since: a broker's user may change while it runs."""
        ours = next(each for each in self._services.config.listeners if each.name == listener)
        if not ours.security.startswith("SASL_") or not broker.inter_broker_principal:
            return None
        known = {broker.inter_broker_principal}
        if image.broker_configs:
            try:
                dynamic = image.broker_config(""), image.broker_config(str(broker.id))
                known.add(self._principal_of(self._services.config.with_dynamic(*dynamic)))
            except ConfigError as wrong:
                LOGGER.debug("the configuration of broker %d can't be read here: %s", broker.id, wrong)
        return known - {""}
