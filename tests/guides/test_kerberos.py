"""The rules of the guide make the users that it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.security.sasl.kerberos.short_names import NoShortName, ShortNamer, parse_rules

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "kerberos.md"


def test_the_rules_of_the_guide_make_its_users() -> None:
    rows = re.findall(r"^\| `((?:RULE|DEFAULT)[^`]*)` \| `([^`]+)` \| `?(\S+?)`? \|$", GUIDE.read_text(), re.MULTILINE)
    assert len(rows) == 6
    for rule, principal, user in rows:
        names = ShortNamer(parse_rules([rule]), "EXAMPLE.ORG")
        if user == "nobody":
            with pytest.raises(NoShortName):
                names.name_of(principal)
        else:
            assert names.name_of(principal) == user
