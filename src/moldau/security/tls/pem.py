"""Finding certificates and keys in PEM, as liberally as Kafka: text around them, blanks instead of line ends."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from bisect import bisect_left
from typing import NamedTuple

CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_KEY = "PRIVATE KEY"
_DASHES = "-----"
_BEGIN = re.compile(rf"{_DASHES}BEGIN ([A-Z0-9 ]{{1,40}})(?={_DASHES})")
_END = re.compile(rf"{_DASHES}END ([A-Z0-9 ]{{1,40}})(?={_DASHES})")
_LINE_CHARS = 64


class InvalidPem(ValueError):
    """A block of PEM whose inside is not what its first line says."""


class Block(NamedTuple):
    label: str
    body: str

    @property
    def is_certificate(self) -> bool:
        return self.label in CERTIFICATES

    @property
    def is_key(self) -> bool:
        return self.label.endswith(_KEY)

    @property
    def is_encrypted(self) -> bool:
        return self.label.startswith("ENCRYPTED") or self._has_headers

    def der(self) -> bytes:
        try:
            return b64decode("".join(self.body.split()), validate=True)
        except ValueError:
            raise InvalidPem(f"what follows BEGIN {self.label} is not Base64") from None

    def text(self) -> str:
        """With lines as OpenSSL wants them. The headers of OpenSSL's older encryption need theirs as they are."""
        if self._has_headers:
            return f"-----BEGIN {self.label}-----{self.body}-----END {self.label}-----\n"
        return encoded(self.label, self.der())

    @property
    def _has_headers(self) -> bool:
        return "Proc-Type:" in self.body


def blocks(text: str) -> list[Block]:
    """From each BEGIN to the next END of the same label. One look at the text, however many have no END."""
    ends: dict[str, list[int]] = {}
    for found in _END.finditer(text):
        ends.setdefault(found[1], []).append(found.start())
    made, after = [], 0
    for found in _BEGIN.finditer(text):
        body_at, label_ends = found.end() + len(_DASHES), ends.get(found[1], [])
        next_end = bisect_left(label_ends, body_at)
        if found.start() >= after and next_end < len(label_ends):
            end = label_ends[next_end]
            made.append(Block(found[1], text[body_at:end]))
            after = end + len(f"{_DASHES}END {found[1]}{_DASHES}")
    return made


def encoded(label: str, content: bytes) -> str:
    flat = b64encode(content).decode()
    lines = [flat[at : at + _LINE_CHARS] for at in range(0, len(flat), _LINE_CHARS)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
