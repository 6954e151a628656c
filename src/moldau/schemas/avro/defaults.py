"""Whether a default fits its field's type, by Java's rules: any branch of a union, and no look at symbols or sizes."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.core import limits
from moldau.schemas.avro.types import Absent, Array, Field, Map, Names, Primitive, Record, Type, Union, known
from moldau.schemas.model import InvalidSchema, Json

_WHOLE = {"int": 2**31, "long": 2**63}


@dataclass(slots=True)
class Fitting:
    """The judge of one text's defaults. Nested unions can ask for exponential work, hence a number of steps."""

    names: Names
    steps: int = limits.SCHEMA_STEPS_MAX
    depth: int = 0

    def fits(self, value: Json | Absent, type_: Type) -> bool:
        """Raises InvalidSchema where the steps do not suffice, and for a default that is nested too deep."""
        self.steps -= 1
        if self.steps < 0:
            raise InvalidSchema("its defaults take too long to compare with their types")
        if self.depth > limits.AVRO_DEPTH_MAX:
            raise InvalidSchema(f"a default is nested deeper than {limits.AVRO_DEPTH_MAX} levels")
        self.depth += 1
        try:
            return self._fits(value, type_)
        finally:
            self.depth -= 1

    def _fits(self, value: Json | Absent, type_: Type) -> bool:
        type_ = known(type_, self.names)
        if isinstance(type_, Union):
            return any(self.fits(value, branch) for branch in type_.branches)
        if isinstance(type_, Primitive):
            return _primitive_fits(value, type_.kind)
        if isinstance(type_, Array):
            return isinstance(value, list) and all(self.fits(item, type_.items) for item in value)
        if isinstance(type_, Map):
            return isinstance(value, dict) and all(self.fits(item, type_.values) for item in value.values())
        if isinstance(type_, Record):
            return isinstance(value, dict) and all(self._field_fits(value, field) for field in type_.fields)
        return isinstance(value, str)

    def _field_fits(self, value: dict[str, Json], field: Field) -> bool:
        """A field's own default was judged where it stands; to ask again could go in circles."""
        self.steps -= 1
        if field.name in value:
            return self.fits(value[field.name], field.type)
        return not isinstance(field.default, Absent)


def _primitive_fits(value: Json | Absent, kind: str) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("string", "bytes"):
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if kind in ("float", "double"):
        return isinstance(value, int | float)
    return isinstance(value, int) and -_WHOLE[kind] <= value < _WHOLE[kind]
