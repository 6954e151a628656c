"""The grammar of `--offset`."""

from __future__ import annotations

import pytest

from moldau.cli.records.offsets import END, START, Anchor, OutOfRange, Start, parse_start, resolve

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("start", START),
        ("earliest", START),
        ("end", END),
        ("latest", END),
        ("47", Start(Anchor.OFFSET, 47)),
        ("-3", Start(Anchor.BEFORE_END, 3)),
        ("+2", Start(Anchor.AFTER_START, 2)),
        ("@1600000000000", Start(Anchor.TIMESTAMP_MS, 1_600_000_000_000)),
        ("@2020-09-13", Start(Anchor.TIMESTAMP_MS, 1_599_955_200_000)),
        ("@2020-09-13T12:26:40", Start(Anchor.TIMESTAMP_MS, 1_600_000_000_000)),
        ("@2020-09-13T14:26:40+02:00", Start(Anchor.TIMESTAMP_MS, 1_600_000_000_000)),
        ("@-90s", Start(Anchor.TIMESTAMP_MS, NOW_MS - 90_000)),
        ("@-2h", Start(Anchor.TIMESTAMP_MS, NOW_MS - 7_200_000)),
        ("@-1d", Start(Anchor.TIMESTAMP_MS, NOW_MS - 86_400_000)),
    ],
)
def test_forms(text: str, start: Start) -> None:
    assert parse_start(text, now_ms=NOW_MS) == start


@pytest.mark.parametrize("text", ["@1969-12-31T23:59:59.999", "@-20000d"])
def test_a_time_that_would_mean_something_else_in_a_request_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="before 1970"):
        parse_start(text, now_ms=NOW_MS)


@pytest.mark.parametrize("text", ["", "soon", "4 7", "@", "@soon", "@-1w", "1.5", "--3", "9" * 30])
def test_other_forms_are_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_start(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        (START, 5),
        (END, 9),
        (Start(Anchor.AFTER_START, 2), 7),
        (Start(Anchor.AFTER_START, 100), 9),
        (Start(Anchor.BEFORE_END, 1), 8),
        (Start(Anchor.BEFORE_END, 100), 5),
        (Start(Anchor.OFFSET, 5), 5),
        (Start(Anchor.OFFSET, 9), 9),
        (Start(Anchor.TIMESTAMP_MS, 60), 6),
        (Start(Anchor.TIMESTAMP_MS, 100), 9),
    ],
)
def test_the_offset_lies_in_the_partition(start: Start, offset: int) -> None:
    records = {6: 60, 7: 70, 8: 80}
    found = resolve(start, low=5, high=9, offset_at=lambda ms: next((o for o, at in records.items() if at >= ms), None))
    assert found == offset


@pytest.mark.parametrize("offset", [4, 10])
def test_an_offset_outside_is_refused(offset: int) -> None:
    with pytest.raises(OutOfRange, match=r"outside 5\.\.9"):
        resolve(Start(Anchor.OFFSET, offset), low=5, high=9, offset_at=lambda _ms: None)
