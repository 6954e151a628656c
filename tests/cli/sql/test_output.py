"""What `moldau sql` prints is what its format promises."""

from __future__ import annotations

import json

from moldau.cli.sql.output import plain


def test_what_is_no_number_is_no_number_in_json_either() -> None:
    found = json.dumps([plain(value) for value in (float("nan"), float("inf"), float("-inf"), 1.5)], allow_nan=False)
    assert json.loads(found) == ["NaN", "Infinity", "-Infinity", 1.5]
