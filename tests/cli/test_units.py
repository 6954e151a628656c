"""Sizes, rates and durations as people write them."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from moldau.cli.units import count, duration, duration_text, size, size_text


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("500", 500),
        ("500B", 500),
        ("1kB", 1_000),
        ("1.5GB/s", 1_500_000_000),
        ("512MiB", 512 << 20),
        ("1g", 10**9),
        ("2 TB", 2 * 10**12),
    ],
)
def test_sizes(text: str, bytes_: int) -> None:
    assert size(text) == bytes_


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1XB", "1e9", "0", "2000PB", "1.GB", "٣MB", "1iB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        size(text)


@pytest.mark.parametrize(("text", "number"), [("50000", 50_000), ("50k/s", 50_000), ("1.5M", 1_500_000)])
def test_counts(text: str, number: float) -> None:
    assert count(text) == number


@pytest.mark.parametrize("text", ["", "k", "0", "many", "-5"])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        count(text)


@pytest.mark.parametrize(("text", "ms"), [("30s", 30_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("5ms", 5)])
def test_durations(text: str, ms: int) -> None:
    assert duration(text) == ms


@pytest.mark.parametrize("text", ["", "5", "0s", "soon", "-1h", "40000d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        duration(text)


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (1_250_000_000, "1.25 GB"), (605 * 10**12, "605 TB")],
)
def test_sizes_as_text(bytes_: int, text: str) -> None:
    assert size_text(bytes_) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (500, "500 ms"), (3_000, "3 s"), (5_400_000, "1 h 30 min"), (90_061_000, "1 d 1 h")],
)
def test_durations_as_text(ms: float, text: str) -> None:
    assert duration_text(ms) == text
