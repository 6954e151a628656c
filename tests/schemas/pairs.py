"""Tables of pairs of schemas, as text: what changed, the old and the new one, and why one can't read the other.

an int becomes a long
    old       "int"
    new       "long"
    backward  yes
    forward   TYPE_MISMATCH /
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from moldau.schemas.model import Incompatibility


@dataclass(frozen=True, slots=True)
class Row:
    """`backward` is why the new schema can't read what the old one wrote, `forward` the other way round."""

    what: str
    old: str
    new: str
    backward: tuple[str, ...]
    forward: tuple[str, ...]

    def verdicts(self) -> dict[str, bool]:
        """By the level that a subject is set to; without history the transitive ones are the same."""
        back, forth = not self.backward, not self.forward
        plain = {"NONE": True, "BACKWARD": back, "FORWARD": forth, "FULL": back and forth}
        return plain | {f"{level}_TRANSITIVE": good for level, good in plain.items() if level != "NONE"}


def read_pairs(path: Path) -> list[Row]:
    """The rows of a table; lines that begin with # are for readers."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    rows = []
    for at in range(0, len(lines), 5):
        values = dict(line.strip().split(maxsplit=1) for line in lines[at + 1 : at + 5])
        backward, forward = (
            () if values[way] == "yes" else tuple(values[way].split(", ")) for way in ("backward", "forward")
        )
        rows.append(Row(lines[at].strip(), values["old"], values["new"], backward, forward))
    return rows


def reasons(found: Sequence[Incompatibility]) -> tuple[str, ...]:
    return tuple(sorted({f"{each.kind} {each.path}" for each in found}))


def wrong_rows(rows: Sequence[Row], compare: Callable[[str, str], Sequence[Incompatibility]]) -> list[str]:
    """`compare` takes the reader's and the writer's text. Tells what a table expects and what was found."""
    wrong = []
    for row in rows:
        for way, expected, reader, writer in (
            ("backward", row.backward, row.new, row.old),
            ("forward", row.forward, row.old, row.new),
        ):
            found = reasons(compare(reader, writer))
            if found != tuple(sorted(expected)):
                wrong.append(f"{row.what}: {way} expected {expected or 'yes'}, found {found or 'yes'}")
    return wrong
