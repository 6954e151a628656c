"""The command line of `moldau delegation-tokens`."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping

from moldau.cli.completion.kinds import PRINCIPAL
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.parsing import Parser, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXAMPLES = """\
Tokens are handled by users who have logged in: --command-config says as whom. -1 is the broker's own period.

examples:
  moldau delegation-tokens --create --max-life-time-period -1 --renewer-principal User:bob --command-config alice.conf
  moldau delegation-tokens --describe --owner-principal User:alice --command-config alice.conf
  moldau delegation-tokens --renew --renew-time-period -1 --hmac HMAC --command-config bob.conf
  moldau delegation-tokens --expire --expiry-time-period -1 --hmac HMAC --command-config alice.conf
"""
LONG_MAX = 2**63 - 1
NEEDED: Mapping[str, tuple[str, ...]] = {
    "--create": ("--max-life-time-period",),
    "--renew": ("--hmac", "--renew-time-period"),
    "--expire": ("--hmac", "--expiry-time-period"),
    "--describe": (),
}
REFUSED: Mapping[str, tuple[str, ...]] = {
    "--create": ("--hmac", "--renew-time-period", "--expiry-time-period"),
    "--renew": ("--renewer-principal", "--max-life-time-period", "--expiry-time-period", "--owner-principal"),
    "--expire": ("--max-life-time-period", "--renew-time-period", "--owner-principal"),
    "--describe": ("--renew-time-period", "--max-life-time-period", "--hmac", "--expiry-time-period"),
}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.delegation_tokens import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau delegation-tokens",
        description="This tool helps to create, renew, expire, or describe delegation tokens.",
        epilog=EXAMPLES,
    )
    actions = parser.add_argument_group("actions, of which one is needed")
    for name, told in (
        ("--create", "a new token"),
        ("--renew", "a later end for a token"),
        ("--expire", "an earlier end for a token"),
        ("--describe", "the tokens of owners, or all that you may see"),
    ):
        actions.add_argument(name, action="store_true", help=told)
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": PRINCIPAL, "type": principal}
    period: dict[str, Any] = {"metavar": "MS", "type": whole(-LONG_MAX, LONG_MAX, "number of milliseconds")}
    parser.add_argument("--owner-principal", help="whose tokens", **several)
    parser.add_argument("--renewer-principal", help="who may renew it, besides its owner", **several)
    parser.add_argument("--max-life-time-period", help="after which it cannot be renewed", **period)
    parser.add_argument("--renew-time-period", help="until its new end", **period)
    parser.add_argument("--expiry-time-period", help="until its end; -1 is now", **period)
    parser.add_argument("--hmac", help="the token's own, which --create and --describe print")
    add_kafka_connection_options(parser)
    options = parser.parse_args(arguments)
    _check(options)
    return options


def _check(options: Namespace) -> None:
    chosen = [each for each in NEEDED if _given(options, each)]
    if len(chosen) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    action = options.chosen = chosen[0]
    for each in NEEDED[action]:
        if not _given(options, each):
            raise UsageError(f'Missing required argument "[{each[2:]}]"')
    for each in REFUSED[action]:
        if _given(options, each):
            raise UsageError(f'Option "[{action[2:]}]" can\'t be used with option "[{each[2:]}]"')
    if options.hmac is not None:
        try:
            options.secret = b64decode(options.hmac, validate=True)
        except (NoBase64, ValueError):
            raise UsageError("--hmac: expected what --create printed, in Base64") from None


def _given(options: Namespace, option: str) -> bool:
    return getattr(options, option.removeprefix("--").replace("-", "_")) not in (None, False, [])


def principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise ArgumentTypeError(f"expected a string in format principalType:principalName but got {text}")
    return kind, name
