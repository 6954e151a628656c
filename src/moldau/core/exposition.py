"""Metrics as Prometheus reads them: its text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGE, COUNTER, SUMMARY, HISTOGRAM = "gauge", "counter", "summary", "histogram"
Labels = Mapping[str, object]


@dataclass(slots=True)
class Exposition:
    """Metrics by their names, each with its samples in one place, as the format wants it."""

    families: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, help_text: str, labels: Labels, value: float | int | None, kind: str = GAUGE) -> None:
        lines = self.lines(name, help_text, kind)
        if value is not None:
            lines.append(f"{name}{labelled(labels)} {value}")

    def lines(self, name: str, help_text: str, kind: str = GAUGE) -> list[str]:
        """Those of one metric, for whoever has thousands of samples and adds them as lines: `name{labels} value`."""
        found = self.families.get(name)
        if found is None:
            found = self.families[name] = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        return found

    def text(self) -> str:
        return "".join(f"{line}\n" for lines in self.families.values() for line in lines)

    def blocks(self) -> Iterator[bytes]:
        """The same text, one metric at a time."""
        for lines in self.families.values():
            yield ("\n".join(lines) + "\n").encode()


def labelled(labels: Labels) -> str:
    """Labels as they stand behind a metric's name; nothing where there are none."""
    shown = ",".join([f'{key}="{escaped(str(each))}"' for key, each in labels.items()])
    return f"{{{shown}}}" if shown else ""


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
