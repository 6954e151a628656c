"""What is drawn of a project, and which topics its flows read."""

from __future__ import annotations

from moldau.spark.pipelines.declarative.elements import DataSource, Elements, Flow, Output, OutputKind, drawing_of
from moldau.spark.pipelines.graph import as_dot, as_mermaid, as_text

ORDERS = DataSource("moldau", {"subscribe": "orders"}, is_streaming=True)
LARGE = DataSource("moldau", {"topic": "large-orders"})


def shop() -> Elements:
    elements = Elements()
    elements.add_output(Output("records", OutputKind.TEMPORARY_VIEW))
    elements.add_output(Output("orders", OutputKind.STREAMING_TABLE))
    elements.add_output(Output("customers", OutputKind.MATERIALIZED_VIEW))
    elements.add_output(Output("large_orders", OutputKind.SINK, LARGE))
    elements.add_flow(Flow("records", "records", (), (ORDERS,)))
    elements.add_flow(Flow("orders", "orders", ("Records",)))
    elements.add_flow(Flow("customers", "customers", ("spark_catalog.default.orders",)))
    elements.add_flow(Flow("send_large_orders", "large_orders", ("orders",)))
    return elements


def test_text() -> None:
    assert as_text(drawing_of("shop", shop())) == (
        "pipeline shop\n"
        "\n"
        "materialized view customers\n"
        "└─ streaming table orders\n"
        "   └─ temporary view records\n"
        "      └─ stream topic orders\n"
        "\n"
        "sink large_orders  (into topic large-orders)\n"
        "└─ streaming table orders\n"
        "   └─ temporary view records\n"
        "      └─ stream topic orders\n"
    )


def test_shapes() -> None:
    drawing = drawing_of("shop", shop())
    assert as_mermaid(drawing).splitlines() == [
        "flowchart LR",
        '    f0(["topic orders"])',
        '    o0["records"]',
        '    o1[("orders")]',
        '    o2[("customers")]',
        '    o3[["large_orders<br/>into topic large-orders"]]',
        "    f0 --> o0",
        "    o0 --> o1",
        "    o1 --> o2",
        "    o1 --> o3",
    ]
    assert 'o2 [shape=cylinder, label="customers"];' in as_dot(drawing)


def test_an_update_runs_what_is_kept_and_reads_topics_through_views() -> None:
    elements = shop()
    streams = {flow.name: elements.streams_of(flow) for flow in elements.updated_flows()}
    assert streams == {"orders": [ORDERS], "customers": [], "send_large_orders": []}


def test_what_can_be_computed_anew() -> None:
    assert shop().tables() == ["orders", "customers"]


def test_where_letters_go_is_drawn() -> None:
    elements = Elements()
    elements.add_output(Output("orders", OutputKind.STREAMING_TABLE))
    kept = DataSource("moldau", {"subscribe": "orders, returns", "onError": "deadletter"}, is_streaming=True)
    elements.add_flow(Flow("orders", "orders", (), (kept, ORDERS)))
    assert as_text(drawing_of("shop", elements)).endswith(
        "streaming table orders\n"
        "├─ stream topic orders, returns  (what does not fit into topic orders.dead-letters, returns.dead-letters)\n"
        "└─ stream topic orders\n"
    )
