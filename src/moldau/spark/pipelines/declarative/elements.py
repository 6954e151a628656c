"""What a project defines: outputs, the flows that fill them, and what flows read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from moldau.spark.pipelines.graph import Drawing, Edge, Node, unreadable

MOLDAU = "moldau"
TOPICS = {"topic": "topic", "subscribe": "topic", "subscribepattern": "pattern"}  # options, and what they name


class OutputKind(Enum):
    STREAMING_TABLE = "streaming table"
    MATERIALIZED_VIEW = "materialized view"
    TEMPORARY_VIEW = "temporary view"
    SINK = "sink"


TABLES = (OutputKind.STREAMING_TABLE, OutputKind.MATERIALIZED_VIEW)


@dataclass(frozen=True, slots=True)
class DataSource:
    """What is read or written by `format(…)`."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    is_streaming: bool = False

    def __str__(self) -> str:
        given = {name.lower(): value for name, value in self.options.items()}
        if self.format == MOLDAU:
            for name, words in TOPICS.items():
                if name in given:
                    return f"{words} {given[name]}"
        return f"{self.format} {given.get('path', '')}".rstrip()

    @property
    def details(self) -> tuple[str, ...]:
        """What becomes of records that can't be read."""
        if self.format != MOLDAU:
            return ()
        given = {name.lower(): value for name, value in self.options.items()}
        return tuple(unreadable(given, next((given[name] for name in TOPICS if name in given), "TOPIC")))


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    kind: OutputKind
    sink: DataSource | None = None

    def __str__(self) -> str:
        return str(self.sink) if self.sink else f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True)
class Flow:
    name: str
    target: str
    inputs: tuple[str, ...] = ()  # names, in the order of appearance
    sources: tuple[DataSource, ...] = ()


@dataclass(slots=True)
class Elements:
    outputs: dict[str, Output] = field(default_factory=dict)
    flows: dict[str, Flow] = field(default_factory=dict)

    def add_output(self, output: Output) -> None:
        self.outputs[output.name] = output

    def add_flow(self, flow: Flow) -> None:
        self.flows[flow.name] = flow

    def output(self, name: str) -> Output | None:
        """By its name, or by the last part of a name with catalog and database."""
        for wanted in (name, name.rpartition(".")[2]):
            for one in self.outputs.values():
                if wanted.lower() in (one.name.lower(), one.name.lower().rpartition(".")[2]):
                    return one
        return None

    def tables(self) -> list[str]:
        """What can be computed anew by its name."""
        return [one.name for one in self.outputs.values() if one.kind in TABLES]

    def updated_flows(self) -> list[Flow]:
        """Those that an update runs: a temporary view is part of the flows that read it."""
        return [one for one in self.flows.values() if not self._is_temporary(one.target)]

    def streams_of(self, flow: Flow) -> list[DataSource]:
        """Topics that a flow reads as streams, by itself or through temporary views."""
        found, ahead, seen = [], [flow], set[str]()
        while ahead:
            one = ahead.pop(0)
            found += [source for source in one.sources if source.format == MOLDAU and source.is_streaming]
            views = {view.name for view in map(self.output, one.inputs) if view and self._is_temporary(view.name)}
            ahead += [each for each in self.flows.values() if each.target in views - seen]
            seen |= views
        return found

    def _is_temporary(self, name: str) -> bool:
        output = self.output(name)
        return output is not None and output.kind is OutputKind.TEMPORARY_VIEW


def drawing_of(name: str, elements: Elements) -> Drawing:
    """What is read by `format(…)`, then outputs; drawn from those that nothing in the project reads."""
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []
    outputs = {output.name: f"o{number}" for number, output in enumerate(elements.outputs.values())}
    for flow in elements.flows.values():
        target = elements.output(flow.target)
        if target is None:
            continue
        for source in flow.sources:
            kind = "stream" if source.is_streaming else "table"
            node = Node(f"f{len(nodes)}", kind, str(source), source.details)
            node = nodes.setdefault(f"{kind} {source} {source.details}", node)
            edges.append(Edge(node.id, outputs[target.name]))
        for read in map(elements.output, flow.inputs):
            if read is not None:
                edges.append(Edge(outputs[read.name], outputs[target.name]))
    drawn = [*nodes.values()]
    for output in elements.outputs.values():
        details = (f"into {output.sink}",) if output.sink else ()
        drawn.append(Node(outputs[output.name], output.kind.value, output.name, details))
    read_ids = {edge.start for edge in edges}
    ends = tuple(each for each in outputs.values() if each not in read_ids)
    return Drawing(name, tuple(drawn), tuple(dict.fromkeys(edges)), ends)
