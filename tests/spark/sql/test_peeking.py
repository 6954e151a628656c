from __future__ import annotations

import json

import pytest

from moldau.spark.sql.peeking import options_of, value_format


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([b'{"a": 1}', None], "json"),
        ([b'{"a": 1}', b"[1]"], "string"),
        ([b"text"], "string"),
        ([b"\xff"], "binary"),
        ([None], "string"),
        ([], "string"),
    ],
)
def test_the_most_specific_format_that_fits_all(values: list[bytes | None], kind: str) -> None:
    assert value_format(values) == kind


def test_columns_are_written_down_whatever_their_names_are() -> None:
    options = options_of([b'{"a b": {"c,d": 1}}', b'{"a b": {}, "x": 1.5}'])
    schema = json.loads(options["valueSchema"])
    assert [(field["name"], field["type"] if field["name"] == "x" else None) for field in schema["fields"]] == [
        ("a b", None),
        ("x", "double"),
    ]


def test_objects_without_members_are_text() -> None:
    assert options_of([b"{}"]) == {"valueFormat": "string"}
