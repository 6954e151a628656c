"""What a run found, for people and for programs: a line for each scenario, and the settings that follow."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.cli.output import JSON_LINES, Row, is_for_people, print_rows, print_value
from moldau.cli.verify.outcome import Outcome, told
from moldau.cli.verify.settings import Measured, Setting, as_properties, consumer_settings, producer_settings

COLUMNS = ("scenario", "verdict", "acknowledged", "read", "lost", "duplicated", "out_of_order", "times")
MORE = ("unread", "redelivered", "seconds")
CSV = "csv"
UNPREDICTABLE = "unclean-election"  # nobody is meant to take records in it
PAUSE = "_pause_ms"


def print_report(outcomes: Sequence[Outcome], *, output: str) -> None:
    measured = measured_by(outcomes)
    producers, consumers = producer_settings(measured), consumer_settings(measured)
    if is_for_people(output):
        print_rows([_row(each) for each in outcomes], columns=COLUMNS, more=MORE, output=output)
        for line in [*_remarks(outcomes), *_properties(producers, consumers)]:
            print(line)
    elif output == CSV:
        print_rows([_row(each) for each in outcomes], columns=COLUMNS, more=MORE, output=output)
    else:
        rows = [_raw(each) for each in outcomes]
        settings = {"producer": _values(producers), "consumer": _values(consumers)}
        if output == JSON_LINES:
            print_rows([*rows, {"settings": settings}], columns=(), output=output)
        else:
            print_value({"scenarios": rows, "settings": settings}, output=output)


def measured_by(outcomes: Sequence[Outcome]) -> Measured:
    usual = [each for each in outcomes if each.scenario != UNPREDICTABLE]
    pauses = [time for each in usual for name in each.figures if name.endswith(PAUSE) for time in each.times(name)]
    return Measured(
        election_ms=_longest(usual, "acknowledged_ms"),
        unacknowledged_ms=_longest(usual, "unacknowledged_ms"),
        pause_ms=max(pauses, default=None),
    )


def _longest(outcomes: Sequence[Outcome], name: str) -> float | None:
    return max((time for each in outcomes for time in each.times(name)), default=None)


def _row(outcome: Outcome) -> Row:
    if outcome.skipped is not None:
        return {"scenario": outcome.scenario, "verdict": outcome.verdict, "times": outcome.skipped}
    counts = outcome.counts
    return {
        "scenario": outcome.scenario,
        "verdict": outcome.verdict,
        "acknowledged": counts.acknowledged,
        "read": counts.read,
        "lost": counts.lost,
        "duplicated": counts.duplicated,
        "out_of_order": counts.out_of_order,
        "unread": counts.unread,
        "redelivered": counts.redelivered,
        "seconds": round(outcome.seconds, 1),
        "times": "; ".join(told(outcome.figures)),
    }


def _raw(outcome: Outcome) -> Row:
    row = {name: value for name, value in _row(outcome).items() if name != "times"}
    return {
        **row,
        "figures": {name: _rounded(value) for name, value in outcome.figures.items()},
        "complaints": outcome.complaints,
        "notes": outcome.notes,
        **({"skipped": outcome.skipped} if outcome.skipped is not None else {}),
    }


def _rounded(value: object) -> object:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 1) if isinstance(value, float) else value


def _remarks(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [f"{each.scenario}: {line}" for each in outcomes for line in each.complaints]
    lines += [f"{each.scenario}: {line}" for each in outcomes for line in each.notes]
    return ["", *lines] if lines else []


def _properties(producers: Sequence[Setting], consumers: Sequence[Setting]) -> list[str]:
    if not producers and not consumers:
        return []
    lines = ["", "# Settings that follow from what was measured, at least:"]
    if producers:
        lines += as_properties("of producers", producers)
    if consumers:
        lines += as_properties("of consumers", consumers)
    return lines


def _values(settings: Sequence[Setting]) -> dict[str, object]:
    return {each.key: {"value": each.value, "why": each.why} for each in settings}
