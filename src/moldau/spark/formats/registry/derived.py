"""The schema of a column's type, as text for the registry, where the user gives none."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from moldau.schemas.model import ParsedSchema
from moldau.spark.formats.registry.options import SubjectOptions

TOP_NAME = "topLevelRecord"  # as Spark's to_avro calls it


def derived_schema(options: SubjectOptions, arrow_type: pa.DataType, *, known: ParsedSchema | None) -> str:
    """`known` is the subject's latest schema: its record's name stays, and so do numbers of Protobuf's fields."""
    name = options.record_name or (known.record_name if known is not None else None)
    place = f"column {options.side}"
    if options.format == "json":
        from moldau.spark.formats.json.derived import json_schema_of

        return json.dumps(json_schema_of(arrow_type, title=name or TOP_NAME, place=place))
    if options.format == "protobuf":
        from moldau.spark.formats.protobuf.derived import proto_text_of

        before = known.message_class().DESCRIPTOR if known is not None else None  # type: ignore[attr-defined]
        return proto_text_of(arrow_type, full_name=name or TOP_NAME, known=before, place=place)
    return json.dumps(_avro(arrow_type, name or TOP_NAME, place))


def _avro(arrow_type: pa.DataType, full_name: str, place: str) -> Any:
    from moldau.spark.formats.avro.schema import avro_document_of

    namespace, _, name = full_name.rpartition(".")
    document = _with_defaults(avro_document_of(arrow_type, name=name, place=place))
    return {"namespace": namespace, **document} if namespace and isinstance(document, dict) else document


def _with_defaults(schema: Any) -> Any:
    """Null is the default of what may be null: then a column that is added later is a compatible change."""
    if isinstance(schema, list):
        return [_with_defaults(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        name: _with_defaults(value) if name in ("type", "items", "values") else value for name, value in schema.items()
    }
    if isinstance(schema.get("fields"), list):
        made["fields"] = [_field(field) for field in schema["fields"]]
    return made


def _field(field: dict[str, Any]) -> dict[str, Any]:
    made = {**field, "type": _with_defaults(field["type"])}
    is_nullable = isinstance(field["type"], list) and field["type"][:1] == ["null"]
    return {**made, "default": None} if is_nullable else made
