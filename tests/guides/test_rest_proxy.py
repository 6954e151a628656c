"""The guide of the REST proxy: its commands, in order, before a broker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from moldau.cli.rest.settling import IGNORED, KEYS, OWN, PREFIXES
from tests.brokers import PROJECT
from tests.guides.code_blocks import blocks, run
from tests.rest.proxies import running_proxy

pytestmark = pytest.mark.xdist_group("rest")

PAGE = "docs/guides/rest-proxy.md"


def test_the_examples(bootstrap: str, tmp_path: Path) -> None:
    with running_proxy(bootstrap) as proxy:
        code = f"REST={proxy.url}\n" + "\necho\n".join(blocks(PAGE, "sh"))
        printed = run(["bash", "-eo", "pipefail", "-c", code], cwd=tmp_path)
    failures = re.findall(r'"error_code":(?!200|null)\d+', printed)
    assert not failures, printed
    events = [json.loads(each.removeprefix("data: ")) for each in printed.splitlines() if each.startswith("data: {")]
    assert len([each for each in events if each.get("topic_name") == "orders"]) == 3
    assert "event: end" in printed


def test_every_key_of_ours_is_told() -> None:
    text = (PROJECT / PAGE).read_text()
    known = [key for key in (*KEYS, *OWN) if not key.startswith(IGNORED)]
    assert not [key for key in known if f"`{key}`" not in text and not key.startswith(PREFIXES[:2])]
