"""What the SQL files of a project define, for the graph and the status. Spark alone judges the SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moldau.spark.pipelines.declarative.elements import Elements, Flow, Output, OutputKind

_NAME = r"((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)"
_OUTPUT = re.compile(
    rf"create\s+(?:or\s+\w+\s+)?(streaming\s+table|materialized\s+view|temporary\s+view|temp\s+view|view)\s+"
    rf"(?:if\s+not\s+exists\s+)?{_NAME}",
    re.IGNORECASE,
)
_FLOW = re.compile(
    rf"create\s+flow\s+{_NAME}\s+.*?\bas\s+insert\s+into\s+(?:once\s+)?{_NAME}\s+(?:by\s+name\s+)?",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES = re.compile(
    rf"create\s+flow\s+{_NAME}\s+.*?\bauto\s+cdc\s+into\s+{_NAME}\s+from\s+(?:stream\s*\(?\s*)?{_NAME}",
    re.IGNORECASE | re.DOTALL,
)
_QUERY = re.compile(r"\bas\s+(?=select\b|with\b|from\b|values\b|\()", re.IGNORECASE)
_STREAM = re.compile(rf"\bstream\s*\(\s*{_NAME}\s*\)|\bstream\s+{_NAME}", re.IGNORECASE)
_KINDS = {
    "streaming table": OutputKind.STREAMING_TABLE,
    "materialized view": OutputKind.MATERIALIZED_VIEW,
}


def read_statements(text: str, elements: Elements) -> None:
    for statement in _statements(text):
        changes, flow, output = _CHANGES.match(statement), _FLOW.match(statement), _OUTPUT.match(statement)
        if changes:
            elements.add_flow(Flow(_plain(changes[1]), _plain(changes[2]), (_plain(changes[3]),)))
        elif flow:
            elements.add_flow(Flow(_plain(flow[1]), _plain(flow[2]), inputs_of(statement[flow.end() :])))
        elif output:
            name = _plain(output[2])
            kind = _KINDS.get(" ".join(output[1].lower().split()), OutputKind.TEMPORARY_VIEW)
            elements.add_output(Output(name, kind))
            query = _QUERY.search(statement, output.end())
            if query:
                elements.add_flow(Flow(name, name, inputs_of(statement[query.end() :])))


def _statements(text: str) -> Iterator[str]:
    """Without the comments around them; nothing where the text is beyond the tokenizer."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        tokens = tokenize(text, read="spark")
    except SqlglotError:
        return
    first = None
    for token in tokens:
        if token.token_type.name == "SEMICOLON":
            if first is not None:
                yield text[first : token.start]
            first = None
        elif first is None:
            first = token.start
    if first is not None:
        yield text[first:]


def inputs_of(query: str) -> tuple[str, ...]:
    """The tables and views that a query names; none where it is beyond the parser."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(_STREAM.sub(lambda found: found[1] or found[2], query), read="spark")
    except SqlglotError:
        return ()
    own = {one.alias_or_name for one in parsed.find_all(exp.CTE)}
    named = (
        ".".join(part.name for part in table.parts)
        for table in parsed.find_all(exp.Table)
        if table.name and table.name not in own
    )
    return tuple(dict.fromkeys(named))


def _plain(name: str) -> str:
    return name.replace("`", "")
