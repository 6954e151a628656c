"""Both halves of the exchange (RFC 4752): a context is established, then the two agree on no security layer.

    client   AP-REQ            its ticket
    server   AP-REP, or none   if the client wants to know who it talks to
    client   an empty token    if there was an AP-REP
    server   what it offers    wrapped: the layers as bits, and a size
    client   what it takes     wrapped: one layer, a size, and an authorization id

Kafka offers and takes "no security layer" alone: TLS protects a connection, or nothing does. As in Kafka, the
authorization id is not looked at: the user is whoever the ticket is for, so nobody becomes another by it, and
kafka-python, which sends the name of the service there, can log in.

A context is the library's and changes with each token: unlike those of other mechanisms, a state here can be used once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from moldau.security.sasl.kerberos.short_names import NoShortName, ShortNamer
from moldau.security.sasl.mechanism import (
    GSSAPI,
    Challenge,
    LastChallenge,
    Response,
    SaslError,
    Success,
    expect_no_challenge,
)

NO_LAYER = 1
LAYER_BYTES = 4  # a layer, and the largest message that the sender takes once there is one
NO_LAYER_WITHOUT_SIZE = bytes([NO_LAYER, 0, 0, 0])
TOKENS_MAX = 4  # Kerberos needs one of each side; a context that wants more is no way to hold a connection for ever


class SecurityContext(Protocol):
    """What is used of a `library.Context`."""

    @property
    def is_complete(self) -> bool: ...
    @property
    def is_mutual(self) -> bool: ...
    @property
    def peer(self) -> str: ...
    def step(self, token: bytes) -> bytes: ...
    def wrap(self, message: bytes) -> bytes: ...
    def unwrap(self, token: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class GssapiServer:
    context: SecurityContext = field(repr=False)
    names: ShortNamer
    tokens_left: int = TOKENS_MAX

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:  # noqa: ARG002
        token = self.context.step(response)
        if self.context.is_complete:
            offering = _Offering(self.context, self.names)
            return Challenge(token, offering) if token else offering.offer()
        if self.tokens_left == 1:
            raise SaslError(f"the context is not established after {TOKENS_MAX} tokens")
        return Challenge(token, GssapiServer(self.context, self.names, self.tokens_left - 1))


@dataclass(frozen=True, slots=True)
class _Offering:
    context: SecurityContext = field(repr=False)
    names: ShortNamer

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:  # noqa: ARG002
        if response:
            raise SaslError(f"{len(response)} bytes where the client has nothing to say")
        return self.offer()

    def offer(self) -> Challenge:
        return Challenge(self.context.wrap(NO_LAYER_WITHOUT_SIZE), _Agreeing(self.context, self.names))


@dataclass(frozen=True, slots=True)
class _Agreeing:
    context: SecurityContext = field(repr=False)
    names: ShortNamer

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:  # noqa: ARG002
        wanted = self.context.unwrap(response)
        if len(wanted) < LAYER_BYTES:
            raise SaslError(f"{len(wanted)} bytes to agree on a security layer; expected at least {LAYER_BYTES}")
        if not wanted[0] & NO_LAYER:
            raise SaslError(f"the client wants security layer {wanted[0]}, which was not offered")
        try:
            return Success(self.names.name_of(self.context.peer), token=None)
        except NoShortName as wrong:
            raise SaslError(str(wrong)) from None


@dataclass(frozen=True, slots=True)
class GssapiClient:
    context: SecurityContext = field(repr=False)

    def evaluate(self, challenge: bytes) -> Response | None:
        expect_no_challenge(challenge)
        return _Establishing(self.context, TOKENS_MAX).respond(b"")


@dataclass(frozen=True, slots=True)
class _Establishing:
    context: SecurityContext = field(repr=False)
    tokens_left: int

    def evaluate(self, challenge: bytes) -> Response | None:
        if not self.tokens_left:
            raise SaslError(f"the context is not established after {TOKENS_MAX} tokens")
        return self.respond(challenge)

    def respond(self, challenge: bytes) -> Response:
        token = self.context.step(challenge)
        if not self.context.is_complete:
            return Response(token, _Establishing(self.context, self.tokens_left - 1))
        if not self.context.is_mutual:
            raise SaslError("the server does not prove who it is")
        return Response(token, _Choosing(self.context))


@dataclass(frozen=True, slots=True)
class _Choosing:
    context: SecurityContext = field(repr=False)

    def evaluate(self, challenge: bytes) -> Response | None:
        offered = self.context.unwrap(challenge)
        if len(offered) != LAYER_BYTES or not offered[0] & NO_LAYER:
            raise SaslError("the server does not offer a connection without a security layer")
        return Response(self.context.wrap(NO_LAYER_WITHOUT_SIZE), LastChallenge(GSSAPI))
