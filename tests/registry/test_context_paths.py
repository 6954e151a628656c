"""A context at the beginning of a path, moved to the subject: Confluent's cases."""

from __future__ import annotations

import pytest

from moldau.registry.serving.contexts import in_context_of_path


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/subjects/foo/versions", "", ("/subjects/foo/versions", "")),
        ("/subjects/contexts/versions", "", ("/subjects/contexts/versions", "")),
        ("/contexts", "", ("/contexts", "")),
        ("/contexts/.c", "", ("/contexts/.c", "")),
        ("/contexts/.c/subjects/s/versions", "", ("/subjects/%3A.c%3As/versions", "")),
        ("/contexts/c/subjects/s", "", ("/subjects/%3A.c%3As", "")),
        ("/contexts/%3A.c%3A/subjects/s", "", ("/subjects/%3A.c%3As", "")),
        ("/contexts/:.:/subjects/s", "", ("/subjects/s", "")),
        ("/contexts/.c/subjects/subjects", "", ("/subjects/%3A.c%3Asubjects", "")),
        ("/contexts/.c/subjects/:.d:s", "", ("/subjects/:.d:s", "")),
        ("/contexts/.c/subjects/%3A.d%3As", "", ("/subjects/%3A.d%3As", "")),
        ("/contexts/.c/subjects/a%2Fb", "", ("/subjects/%3A.c%3Aa%2Fb", "")),
        (
            "/contexts/.c/compatibility/subjects/s/versions",
            "x=1",
            ("/compatibility/subjects/%3A.c%3As/versions", "x=1"),
        ),
        ("/contexts/.c/config", "", ("/config/%3A.c%3A", "")),
        ("/contexts/:.:/mode", "", ("/mode", "")),
        ("/contexts/.c/mode/s", "", ("/mode/%3A.c%3As", "")),
        ("/contexts/.c/config/subjects", "", ("/config/%3A.c%3Asubjects", "")),
        ("/contexts/.c/subjects", "", ("/subjects", "subjectPrefix=%3A.c%3A")),
        ("/contexts/.c/schemas", "subjectPrefix=a%20b", ("/schemas", "subjectPrefix=%3A.c%3Aa+b")),
        ("/contexts/.c/schemas", "subjectPrefix=:*:", ("/schemas", "subjectPrefix=:*:")),
        ("/contexts/.c/schemas/ids/1", "format=x", ("/schemas/ids/1", "format=x&subject=%3A.c%3A")),
        ("/contexts/.c/schemas/ids/1/schema", "subject=%C3%A4", ("/schemas/ids/1/schema", "subject=%3A.c%3A%C3%A4")),
        ("/contexts/.c/contexts/.d/subjects/s", "", ("/contexts/.d/subjects/%3A.c%3As", "")),
    ],
)
def test_where_a_path_below_a_context_leads(path: str, query: str, expected: tuple[str, str]) -> None:
    assert in_context_of_path(path, query) == expected
