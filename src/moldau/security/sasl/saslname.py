"""Names in the GS2 header and in SCRAM's messages (RFC 5801, 5802): `,` is written =2C and `=` is written =3D."""

from __future__ import annotations

from moldau.security.sasl.mechanism import SaslError


def to_saslname(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def from_saslname(text: str) -> str:
    """SaslError unless it is one: not empty, no NUL, and no `=` but in the two escapes."""
    parts = text.split("=")
    if not text or "\0" in text or any(not part.startswith(("2C", "3D")) for part in parts[1:]):
        raise SaslError("a name that is empty, or has a NUL or an invalid escape")
    return parts[0] + "".join(("," if part.startswith("2C") else "=") + part[2:] for part in parts[1:])


def read_gs2_authzid(field: str) -> str:
    """The authorization id of `a=...`, empty if there is none."""
    if not field:
        return ""
    if not field.startswith("a="):
        raise SaslError("a GS2 header whose second field is no authorization id")
    return from_saslname(field[2:])
