"""A pipeline drawn: as text for a terminal, and in the languages of Mermaid and Graphviz for pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from moldau.spark.pipelines.plan import LETTERS_SUFFIX, Plan, Sink, Source, View, letters_topic


class Node(NamedTuple):
    id: str
    kind: str
    label: str
    details: tuple[str, ...]


class Edge(NamedTuple):
    start: str
    end: str


class Drawing(NamedTuple):
    """`ends` are the nodes that a drawing as text begins with."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    ends: tuple[str, ...]


def drawing_of(plan: Plan) -> Drawing:
    """Places, sources, views and sinks, in an order in which nothing comes before what it reads, if there is one."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    ids = {one.name.lower(): f"r{number}" for number, one in enumerate(plan.relations())}
    for one in plan.relations():
        nodes.append(_relation(ids[one.name.lower()], one, plan))
        if isinstance(one, View):
            edges += [
                Edge(ids[name.lower()], ids[one.name.lower()]) for name in one.query.inputs if name.lower() in ids
            ]
    for number, sink in enumerate(plan.sinks):
        nodes.append(_sink(f"s{number}", sink, plan))
        edges += [Edge(ids[name.lower()], f"s{number}") for name in sink.query.inputs if name.lower() in ids]
    letters = [one for one in plan.relations() if plan.has_dead_letters(one.name)]
    for number, one in enumerate(letters):
        nodes.append(_letters(f"l{number}", one.name, plan))
        edges.append(Edge(ids[one.name.lower()], f"l{number}"))
    ends = tuple(node.id for node in nodes if node.kind in ("sink", "dead letters"))
    return Drawing(plan.name, tuple(nodes), tuple(edges), ends)


def _letters(node_id: str, relation: str, plan: Plan) -> Node:
    """Written by the queries of all sinks that read the relation, each for itself."""
    readers = [sink.name for sink in plan.sinks if relation.lower() in plan.upstream(sink.query.inputs)]
    by = f"by {', '.join(readers)}" if readers else "by nobody: no sink reads it"
    return Node(node_id, "dead letters", relation, (f"into topic {letters_topic(relation, plan)}", by))


def _relation(node_id: str, one: Source | View, plan: Plan) -> Node:
    details = []
    if isinstance(one, Source):
        kind = one.kind.value
        details.append(f"from {one.endpoint}{' (changes)' if one.are_changes else ''}")
        if one.keys:
            details.append(f"key {', '.join(one.keys)}")
        details += unreadable(one.endpoint.options, one.endpoint.location)
    else:
        kind = "view"
    if one.shaping.watermark:
        details.append(f"watermark {one.shaping.watermark.column}, {one.shaping.watermark.delay}")
    if one.shaping.deduplicate:
        details.append(f"once per {', '.join(one.shaping.deduplicate)}")
    details += [f"expects {e.name}, otherwise {e.otherwise.value}" for e in plan.expectations_of(one.name)]
    return Node(node_id, kind, one.name, tuple(details))


def unreadable(options: Mapping[str, str], topics: str) -> list[str]:
    """Where records go that a source of these topics can't even read, if they don't end the query."""
    said = {key.lower(): value for key, value in options.items()}
    on_error = said.get("onerror", "").lower()
    if on_error == "deadletter":
        own = ", ".join(f"{topic.strip()}{LETTERS_SUFFIX}" for topic in topics.split(","))
        return [f"what does not fit into topic {said.get('deadlettertopic', own)}"]
    return ["what does not fit is left out"] if on_error == "skip" else []


def _sink(node_id: str, sink: Sink, plan: Plan) -> Node:
    how = f"upsert by {', '.join(sink.keys)}" if sink.is_upsert else f"key {', '.join(sink.keys)}" if sink.keys else ""
    details = (f"into {sink.endpoint}", *filter(None, [how]), str(plan.schedule_of(sink)))
    return Node(node_id, "sink", sink.name, details)


def as_text(drawing: Drawing) -> str:
    """From each end back to what it reads, for that is the question one has."""
    by_id = {node.id: node for node in drawing.nodes}
    before: dict[str, list[str]] = {}
    for edge in drawing.edges:
        before.setdefault(edge.end, []).append(edge.start)

    def lines(node_id: str, lead: str, path: tuple[str, ...]) -> Iterator[str]:
        children = [one for one in before.get(node_id, []) if one not in path]
        for number, child in enumerate(children):
            last = number == len(children) - 1
            yield f"{lead}{'└─' if last else '├─'} {_line(by_id[child])}"
            yield from lines(child, f"{lead}{'   ' if last else '│  '}", (*path, child))

    drawn = [f"pipeline {drawing.name}"]
    for end in drawing.ends:
        drawn += ["", _line(by_id[end]), *lines(end, "", (end,))]
    return "\n".join(drawn) + "\n"


def _line(node: Node) -> str:
    return f"{node.kind} {node.label}" + (f"  ({'; '.join(node.details)})" if node.details else "")


def as_mermaid(drawing: Drawing) -> str:
    shapes = {
        "stream": ("([", "])"),
        "table": ("[(", ")]"),
        "view": ("[", "]"),
        "sink": ("[[", "]]"),
        "letters": ("[/", "/]"),
    }
    drawn = ["flowchart LR"]
    for node in drawing.nodes:
        left, right = shapes[_shape(node)]
        label = "<br/>".join((node.label, *node.details)).replace('"', "#quot;")
        drawn.append(f'    {node.id}{left}"{label}"{right}')
    return "\n".join([*drawn, *(f"    {edge.start} --> {edge.end}" for edge in drawing.edges)]) + "\n"


def as_dot(drawing: Drawing) -> str:
    shapes = {"stream": "cds", "table": "cylinder", "view": "box", "sink": "folder", "letters": "note"}
    drawn = ["digraph pipeline {", "    rankdir=LR;"]
    for node in drawing.nodes:
        label = "\\n".join((node.label, *node.details)).replace('"', '\\"')
        drawn.append(f'    {node.id} [shape={shapes[_shape(node)]}, label="{label}"];')
    return "\n".join([*drawn, *(f"    {edge.start} -> {edge.end};" for edge in drawing.edges), "}"]) + "\n"


def _shape(node: Node) -> str:
    """By the noun of its kind: a streaming table and a materialized view are kept, a temporary view is not."""
    return "table" if node.kind == "materialized view" else node.kind.rpartition(" ")[2]


DRAWINGS: dict[str, Callable[[Drawing], str]] = {"text": as_text, "mermaid": as_mermaid, "dot": as_dot}
