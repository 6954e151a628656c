"""Finding certificates and keys in PEM, as liberally as Kafka: text around them, blanks instead of line ends."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as InvalidBase64
from typing import NamedTuple

CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_KEY = "PRIVATE KEY"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----(.*?)-----END \1-----", re.DOTALL)
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
        except InvalidBase64:
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
    return [Block(*found) for found in _BLOCK.findall(text)]


def encoded(label: str, content: bytes) -> str:
    flat = b64encode(content).decode()
    lines = [flat[at : at + _LINE_CHARS] for at in range(0, len(flat), _LINE_CHARS)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
