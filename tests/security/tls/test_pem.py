"""Blocks of PEM among other text, and text that is made to hurt."""

from __future__ import annotations

import re
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.security.tls.pem import Block, InvalidPem, blocks

PLAIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----(.*?)-----END \1-----", re.DOTALL)
WORDS = [
    "-----",
    "BEGIN ",
    "END ",
    "CERTIFICATE",
    "PRIVATE KEY",
    "\n",
    "AAAA",
    "x",
    "-----BEGIN A-----",
    "-----END A-----",
]


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
def test_what_is_found_is_what_a_plain_pattern_finds(text: str) -> None:
    assert blocks(text) == [Block(*found) for found in PLAIN.findall(text)]


def test_beginnings_without_an_end_take_no_time() -> None:
    text = "".join(f"-----BEGIN A{number}-----" for number in range(100_000)) + "-----BEGIN X-----AAAA-----END X-----"
    begun_s = thread_time()
    assert blocks(text) == [Block("X", "AAAA")]
    assert thread_time() - begun_s < 2


@pytest.mark.parametrize("body", ["\u017e", "*", "A"])
def test_what_is_no_base64_is_told(body: str) -> None:
    with pytest.raises(InvalidPem):
        Block("CERTIFICATE", body).der()
