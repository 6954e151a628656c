"""Times in ISO 8601, as Java reads and writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def at_ms(text: str) -> int | None:
    """Of a time with its zone or in UTC; None for what is none."""
    try:
        found = datetime.fromisoformat(text)
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None


def iso(timestamp_ms: int) -> str | None:
    """Without a fraction that is zero. None for what no calendar has."""
    try:
        found = datetime.fromtimestamp(timestamp_ms // 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    fraction = f".{timestamp_ms % 1_000:03}" if timestamp_ms % 1_000 else ""
    return f"{found:%Y-%m-%dT%H:%M:%S}{fraction}Z"
