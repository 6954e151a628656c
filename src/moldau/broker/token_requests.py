"""What requests about delegation tokens have in common: by which connections they may come, and who answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from moldau.broker.requests.answers import FORWARD_MS
from moldau.controller.settings.delegation_tokens import TokenLifetimes
from moldau.core.config.listeners import PLAINTEXT
from moldau.security.principals import ANONYMOUS
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.broker.context import Context

ERROR_TIMESTAMP = -1  # where Kafka has one for a request that it refused before it looked at tokens

Response = TypeVar("Response", bound=Message)


def are_tokens_allowed(context: Context) -> bool:
    """Kafka's rule: only over a connection that proved who its client is, and not by a token, which could then outlive
    its owner's password. A request that another broker sent on was judged there, by the client's own connection."""
    peer = context.peer
    if peer.principal.is_by_token:
        return False
    if peer.is_forwarded:
        return True
    listeners = context.services.config.listeners
    security = next(each.security for each in listeners if each.name == peer.listener_name)
    return security != PLAINTEXT and not (security == "SSL" and peer.principal == ANONYMOUS)


def token_lifetimes(context: Context) -> TokenLifetimes:
    config = context.services.config
    return TokenLifetimes(
        max_ms=config.int("delegation.token.max.lifetime.ms"),
        renewal_ms=config.int("delegation.token.expiry.time.ms"),
    )


async def controllers_answer(request: Message, response: type[Response], context: Context) -> Response | None:
    """None when there is none, or when this broker is the controller, perhaps by now."""
    services = context.services
    if services.controller.is_active or services.forwarding is None:
        return None
    answer = await services.forwarding.ask_for_client(
        request, context.version, response, header=context.header, peer=context.peer, timeout_ms=FORWARD_MS
    )
    return cast("Response | None", answer)
