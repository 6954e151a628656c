"""Findings as people read them, the worst last, where the prompt is; and as rows for programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from moldau.cli.doctor.findings import Finding, Severity, counted
from moldau.cli.output import WIDE, is_for_people, print_rows
from moldau.core.visible import in_one_line

COLUMNS = ("area", "severity", "check", "subject", "seen")
MORE = ("why", "do")
COLOURS = {
    Severity.PROBLEM: "\x1b[31m",
    Severity.WARNING: "\x1b[33m",
    Severity.NOTE: "\x1b[36m",
    Severity.OK: "\x1b[32m",
}
RESET = "\x1b[0m"
LABEL_WIDTH = 9
LINE_MAX, LINE_MIN = 120, 60

Area = tuple[str, Sequence[Finding]]


def print_report(areas: Sequence[Area], *, output: str, verbose: bool) -> None:
    if not is_for_people(output):
        rows = [finding.row(area) for area, findings in areas for finding in findings]
        print_rows(rows, columns=COLUMNS, more=MORE, output=output)
        return
    shows_all = verbose or output == WIDE
    is_coloured = sys.stdout.isatty()
    width = min(LINE_MAX, max(LINE_MIN, shutil.get_terminal_size((LINE_MAX, 24)).columns))
    for area, findings in areas:
        print(area)
        for finding in sorted(findings, key=lambda each: each.severity.rank):
            if shows_all or finding.severity is not Severity.OK:
                for line in lines_of(finding, width=width, is_coloured=is_coloured):
                    print(line)
        print(f"  {summary(findings, shows_all=shows_all)}")


def lines_of(finding: Finding, *, width: int, is_coloured: bool) -> Iterator[str]:
    label = f"{finding.severity:<{LABEL_WIDTH - 1}}"
    shown = f"{COLOURS[finding.severity]}{label}{RESET}" if is_coloured else label
    first, *rest = _wrapped(f"{finding.subject}: {finding.seen}", width)
    yield f"  {shown} {first}"
    for line in rest:
        yield f"  {'':<{LABEL_WIDTH}}{line}"
    for line in _wrapped(f"why: {finding.why}", width) if finding.why else ():
        yield f"  {'':<{LABEL_WIDTH}}{line}"
    for command in finding.do:
        # Never wrapped: it is copied from the terminal.
        yield f"  {'':<{LABEL_WIDTH}}do:  {in_one_line(command)}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        in_one_line(text), width - LABEL_WIDTH - 2, break_long_words=False, break_on_hyphens=False
    ) or [""]


def summary(findings: Iterable[Finding], *, shows_all: bool) -> str:
    counts = Counter(each.severity for each in findings)
    worse = [
        counted(counts[severity], str(severity))
        for severity in reversed(Severity)
        if counts[severity] and severity is not Severity.OK
    ]
    fine = f"{counts[Severity.OK]} fine" + ("" if shows_all or not counts[Severity.OK] else " (-v shows them)")
    return ", ".join([*worse, fine])
