"""What a broker wants to know of a certificate: whose it is, for which names, and until when."""

from __future__ import annotations

from calendar import timegm
from dataclasses import dataclass, field
from ipaddress import ip_address

from moldau.security.tls import der
from moldau.security.tls.distinguished_names import rfc2253

_VERSION, _EXTENSIONS = 0xA0, 0xA3
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
_EMAIL, _DNS, _URI, _IP = 0x81, 0x82, 0x86, 0x87
_CENTURY_TURN = 50  # two digits of a year from here on are of the last century


class InvalidRequest(Exception):
    """No certificate can be made of what was asked for; the message says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    subject: str
    """As Java prints it."""
    alternative_names: frozenset[str]
    not_before_s: int
    not_after_s: int
    encoded: bytes = field(repr=False)

    def is_expired(self, now_s: float) -> bool:
        return now_s > self.not_after_s


def read_certificate(encoded: bytes) -> Certificate:
    """Of DER. Raises InvalidDer."""
    signed = der.expect(der.element(der.expect(der.element(encoded), der.SEQUENCE).content), der.SEQUENCE)
    parts = list(der.elements(signed.content))
    if parts and parts[0].tag == _VERSION:
        parts = parts[1:]
    if len(parts) < 6:
        raise der.InvalidDer("a certificate with parts missing")
    _, _, _, validity, subject, _, *rest = parts
    times = [_time(one) for one in der.elements(der.expect(validity, der.SEQUENCE).content)]
    if len(times) != 2:
        raise der.InvalidDer("a validity has two times")
    names = [name for one in rest if one.tag == _EXTENSIONS for name in _alternative_names(one.content)]
    return Certificate(rfc2253(subject.raw), frozenset(names), times[0], times[1], encoded)


def _time(found: der.Element) -> int:
    text = der.expect(found, _UTC_TIME, _GENERALIZED_TIME).content.decode("ascii", "replace")
    if found.tag == _UTC_TIME:
        text = ("19" if text[:2].isdigit() and int(text[:2]) >= _CENTURY_TURN else "20") + text
    digits = text.removesuffix("Z")
    if len(text) != 15 or len(digits) != 14 or not digits.isdecimal():
        raise der.InvalidDer(f"{text!r} is no time of a certificate")
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    try:
        return timegm((year, month, day, int(digits[8:10]), int(digits[10:12]), int(digits[12:])))
    except ValueError:
        raise der.InvalidDer(f"{text!r} is no time of a certificate") from None


def _alternative_names(content: bytes) -> list[str]:
    for extension in der.elements(der.expect(der.element(content), der.SEQUENCE).content):
        held = list(der.elements(der.expect(extension, der.SEQUENCE).content))
        if len(held) > 1 and der.object_id(der.expect(held[0], der.OBJECT_ID).content) == _SUBJECT_ALTERNATIVE_NAME:
            names = der.element(der.expect(held[-1], der.OCTET_STRING).content)
            return [_general_name(name) for name in der.elements(der.expect(names, der.SEQUENCE).content)]
    return []


def _general_name(name: der.Element) -> str:
    if name.tag in (_DNS, _EMAIL, _URI):
        kind = {_DNS: "DNS", _EMAIL: "email", _URI: "URI"}[name.tag]
        return f"{kind}:{name.content.decode('ascii', 'replace')}"
    if name.tag == _IP and len(name.content) in (4, 16):
        return f"IP:{ip_address(name.content)}"
    return f"#{name.raw.hex()}"
