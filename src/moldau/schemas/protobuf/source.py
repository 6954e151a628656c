"""What a schema's author wrote, by the places that the compiler noted beside each descriptor."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import FileDescriptorProto

TAB = 8  # the compiler's columns jump at tabs

Path = tuple[int, ...]
Span = tuple[int, int, int, int]


class Source:
    """A text, to be asked by paths of descriptors: numbers of fields and indexes, from the file downwards."""

    def __init__(self, file: FileDescriptorProto, text: str) -> None:
        self._lines = text.encode().split(b"\n")
        self._tabs: dict[int, tuple[list[int], list[int]]] = {}
        self._spans: dict[Path, list[Span]] = defaultdict(list)
        for location in file.source_code_info.location:
            span = tuple(location.span)
            whole = span if len(span) == 4 else (span[0], span[1], span[0], span[2])
            self._spans[tuple(location.path)].append(whole)

    def has(self, path: Path) -> bool:
        return path in self._spans

    def written(self, path: Path) -> str | None:
        """The first stretch of text at a path."""
        spans = self._spans.get(path)
        return self._cut(spans[0]) if spans else None

    def statements(self, *paths: Path) -> Iterator[str]:
        """Each statement at the paths, in the text's order, such as those that reserve numbers and names."""
        return (self._cut(span) for span in sorted(span for path in paths for span in self._spans.get(path, ())))

    def group(self, path: Path, count: int) -> list[list[int]]:
        """The indexes of what stands at `path` + index, by the statement that they stand in."""
        groups: list[list[int]] = []
        blocks = self._spans.get(path, [])
        for index in range(count):
            spans = self._spans.get((*path, index), [])
            inside = next((number for number, block in enumerate(blocks) if spans and _within(spans[0], block)), None)
            while inside is not None and len(groups) < len(blocks):
                groups.append([])
            if inside is None:
                return [list(range(count))]
            groups[inside].append(index)
        return [group for group in groups if group]

    def _cut(self, span: Span) -> str:
        first, start, last, end = span
        start, end = self._byte(first, start), self._byte(last, end)
        if first == last:  # which is the rule, and the whole text may be a line
            return self._lines[first][start:end].decode(errors="replace")
        parts = [self._lines[first][start:], *self._lines[first + 1 : last], self._lines[last][:end]]
        return b"\n".join(parts).decode(errors="replace")

    def _byte(self, number: int, column: int) -> int:
        if b"\t" not in self._lines[number]:
            return column
        if number not in self._tabs:
            self._tabs[number] = _tab_stops(self._lines[number])
        columns, places = self._tabs[number]
        before = bisect_right(columns, column) - 1
        return places[before] + column - columns[before]


def _within(span: Span, block: Span) -> bool:
    return block[:2] <= span[:2] and span[2:] <= block[2:]


def _tab_stops(line: bytes) -> tuple[list[int], list[int]]:
    """The columns after each tab of a line, and the bytes that stand there."""
    columns, places = [0], [0]
    for part in line.split(b"\t")[:-1]:
        column = columns[-1] + len(part)
        columns.append(column + TAB - column % TAB)
        places.append(places[-1] + len(part) + 1)
    return columns, places
