"""What a command line left open, from the environment, a profile or a project's file."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable

from moldau.cli.failures import UsageError
from moldau.cli.output import TABLE, output_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from moldau.cli.profiles import Defaults

    T = TypeVar("T")

TIMEOUT_S = 5.0
TIMEOUT_S_MAX = 3_600.0  # librdkafka takes no more


def settle(options: Namespace) -> None:
    """The time to wait and the form of what is printed; where the cluster is, is settled when it is looked for."""
    wants_timeout = getattr(options, "timeout", TIMEOUT_S) is None
    wants_output = getattr(options, "output", TABLE) is None
    if not (wants_timeout or wants_output):
        return
    from moldau.cli.profiles import OUTPUT, TIMEOUT, of_process

    known = of_process(getattr(options, "profile", None))
    if wants_timeout:
        options.timeout = _said(known, TIMEOUT, seconds, TIMEOUT_S)
    if wants_output:
        options.output = _said(known, OUTPUT, output_format, TABLE)


def _said(known: Defaults, key: str, parsed: Callable[[str], T], usual: T) -> T:
    said = known.settings.get(key)
    if said is None:
        return usual
    try:
        return parsed(said.value)
    except ArgumentTypeError as wrong:
        raise UsageError(f"{said.where}: {key}: {wrong}") from None


def seconds(text: str) -> float:
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = -1
    if not 0 < duration_s <= TIMEOUT_S_MAX:
        raise ArgumentTypeError(
            f"{text!r} is no time to wait; expected seconds, more than 0 and up to {TIMEOUT_S_MAX:g}"
        )
    return duration_s
