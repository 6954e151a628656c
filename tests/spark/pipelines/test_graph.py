"""Drawings of one plan."""

from __future__ import annotations

from moldau.spark.pipelines.graph import as_dot, as_mermaid, as_text, drawing_of
from moldau.spark.pipelines.language.grammar import parse

PLAN = drawing_of(
    parse(
        """create stream orders from topic 'orders' watermark at delay '1 minute';
    create table customers from delta 'customers';
    create view priced as select * from orders join customers using (id);
    expect positive on priced check (amount > 0) otherwise drop;
    create sink lake into delta 'lake' key id upsert every '5s' as select * from priced;""",
        "p.sql",
        name="shop",
    )
)


def test_text() -> None:
    assert as_text(PLAN) == (
        "pipeline shop\n"
        "\n"
        "sink lake  (into delta lake; upsert by id; every 5000 ms)\n"
        "└─ view priced  (expects positive, otherwise drop)\n"
        "   ├─ stream orders  (from topic orders; watermark at, 60000 milliseconds)\n"
        "   └─ table customers  (from delta customers)\n"
    )


def test_mermaid() -> None:
    assert as_mermaid(PLAN).splitlines() == [
        "flowchart LR",
        '    r0(["orders<br/>from topic orders<br/>watermark at, 60000 milliseconds"])',
        '    r1[("customers<br/>from delta customers")]',
        '    r2["priced<br/>expects positive, otherwise drop"]',
        '    s0[["lake<br/>into delta lake<br/>upsert by id<br/>every 5000 ms"]]',
        "    r0 --> r2",
        "    r1 --> r2",
        "    r2 --> s0",
    ]


def test_dot_names_every_node_and_edge() -> None:
    drawn = as_dot(PLAN)
    assert drawn.startswith("digraph pipeline {")
    assert [line.strip() for line in drawn.splitlines() if "->" in line] == ["r0 -> r2;", "r1 -> r2;", "r2 -> s0;"]


def test_everything_that_is_written_is_drawn() -> None:
    plan = parse(
        """create stream orders from topic 'orders' with (onError = deadletter);
        create stream clicks from topic 'clicks' with (onError = skip);
        create view priced as select * from orders;
        expect positive on priced check (amount > 0) otherwise dead letter;
        create sink lake into delta 'lake' as select * from priced;
        create sink copies into topic 'copies' as select * from priced;
        create sink others into console as select * from clicks;""",
        "p.sql",
        name="shop",
    )
    drawn = as_text(drawing_of(plan))
    assert "stream orders  (from topic orders; what does not fit into topic orders.dead-letters)" in drawn
    assert "stream clicks  (from topic clicks; what does not fit is left out)" in drawn
    assert drawn.endswith(
        "dead letters priced  (into topic shop.priced.dead-letters; by lake, copies)\n"
        "└─ view priced  (expects positive, otherwise dead letter)\n"
        "   └─ stream orders  (from topic orders; what does not fit into topic orders.dead-letters)\n"
    )
    assert (
        '    l0[/"priced<br/>into topic shop.priced.dead-letters<br/>by lake, copies"/]'
        in as_mermaid(drawing_of(plan)).splitlines()
    )
    assert "    r2 -> l0;" in as_dot(drawing_of(plan)).splitlines()
