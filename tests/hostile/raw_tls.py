"""A TLS client that sends whatever records it likes after a handshake, which OpenSSL does, and tells the keys."""

from __future__ import annotations

import hmac
import socket
import ssl
import struct
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
KEY_UPDATE = b"\x18\x00\x00\x01\x00"
KEY_UPDATE_REQUESTED = b"\x18\x00\x00\x01\x01"
USER_CANCELLED = b"\x01\x5a"  # a warning
_SHA384 = "sha384"
_VERSION_12 = b"\x03\x03"
_RANDOM_AT = 5 + 4 + 2  # in the record of a hello


class RawTls:
    """Over a connected socket. AES-256-GCM with SHA-384 in both versions, which both sides prefer."""

    def __init__(self, sock: socket.socket, trusted: Path, version: ssl.TLSVersion) -> None:
        self.socket = sock
        self.is_13 = version is ssl.TLSVersion.TLSv1_3
        self._sequence = 0 if self.is_13 else 1  # the handshake's last message is the first of TLS 1.2's epoch
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with tempfile.TemporaryDirectory() as folder:
            context = ssl.create_default_context(cafile=str(trusted))
            context.minimum_version = context.maximum_version = version
            context.set_ciphers("ECDHE+AES256+AESGCM")
            context.keylog_filename = str(Path(folder) / "keys")
            tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            sent, heard = self._shake_hands(tls, incoming, outgoing)
            lines = [line.split(" ") for line in Path(context.keylog_filename).read_text().splitlines()]
            keys = {line[0]: line[2] for line in lines if not line[0].startswith("#")}
        assert "AES_256_GCM" in (tls.cipher() or ("",))[0].replace("-", "_").replace("AES256", "AES_256")
        if self.is_13:
            self._set_secret(bytes.fromhex(keys["CLIENT_TRAFFIC_SECRET_0"]))
        else:
            randoms = heard[_RANDOM_AT:][:32] + sent[_RANDOM_AT:][:32]
            block = _prf(bytes.fromhex(keys["CLIENT_RANDOM"]), b"key expansion" + randoms, 72)
            self._cipher, self._iv = AESGCM(block[:32]), block[64:68]

    def _shake_hands(self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> tuple[bytes, bytes]:
        """What each side said."""
        sent, heard = b"", b""
        while True:
            try:
                tls.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                is_done = False
            said = outgoing.read()
            self.socket.sendall(said)
            sent += said
            if is_done:
                return sent, heard
            came = self.socket.recv(1 << 16)
            assert came, "the broker hung up in the handshake"
            incoming.write(came)
            heard += came

    def record(self, kind: int, content: bytes) -> bytes:
        sequence, self._sequence = struct.pack(">Q", self._sequence), self._sequence + 1
        if self.is_13:
            inner = content + bytes([kind])
            start = bytes([DATA]) + _VERSION_12 + struct.pack(">H", len(inner) + 16)
            nonce = bytes(a ^ b for a, b in zip(self._iv, bytes(4) + sequence, strict=True))
            return start + self._cipher.encrypt(nonce, inner, start)
        about = bytes([kind]) + _VERSION_12
        sealed = self._cipher.encrypt(self._iv + sequence, content, sequence + about + struct.pack(">H", len(content)))
        return about + struct.pack(">H", len(sealed) + 8) + sequence + sealed

    def key_update(self, *, requested: bool = False) -> bytes:
        sent = self.record(HANDSHAKE, KEY_UPDATE_REQUESTED if requested else KEY_UPDATE)
        self._set_secret(_expanded(self._secret, b"traffic upd", 48))
        return sent

    def _set_secret(self, secret: bytes) -> None:
        self._secret, self._sequence = secret, 0
        self._cipher, self._iv = AESGCM(_expanded(secret, b"key", 32)), _expanded(secret, b"iv", 12)


def _expanded(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label of TLS 1.3, which needs one block for all that is asked here."""
    info = struct.pack(">HB", size, 6 + len(label)) + b"tls13 " + label + b"\x00\x01"
    return hmac.digest(secret, info, _SHA384)[:size]


def _prf(secret: bytes, seed: bytes, size: int) -> bytes:
    """Of TLS 1.2."""
    made, step = b"", seed
    while len(made) < size:
        step = hmac.digest(secret, step, _SHA384)
        made += hmac.digest(secret, step + seed, _SHA384)
    return made[:size]
