"""Reading the metadata log: what follows an image makes the next one."""

from __future__ import annotations

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.log_length import LogLength
from moldau.controller.machine import apply_to_draft
from moldau.controller.records import UnknownRecord, decode_records
from moldau.store.store import CorruptStore, Tail


def apply_tail(image: ClusterImage, tail: Tail, length: LogLength) -> ClusterImage:
    """Raises CorruptStore."""
    draft = Draft(ClusterImage() if tail.snapshot else image)
    try:
        if tail.snapshot:
            apply_to_draft(draft, decode_records(tail.snapshot.payload))
            length.read_snapshot(tail.snapshot.payload)
        for entry in tail.entries:
            apply_to_draft(draft, decode_records(entry.payload))
            length.add(entry.payload)
    except UnknownRecord as wrong:
        raise CorruptStore(str(wrong)) from wrong
    except Exception as wrong:
        raise CorruptStore(f"the metadata log can't be applied: {wrong!r}") from wrong
    return draft.finish()
