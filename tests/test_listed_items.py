"""Quantities within orders: what a record lists is told with all that is said of it."""

import json
from collections.abc import Iterator

import pytest
from asked_files import index_asked
from test_asked_kinds import passages_of

from graphrag_pipeline.query import QueryEngine


def order(number: int, by: str, *items: tuple[str, int]) -> dict[str, object]:
    lines = [{"name": name, "qty": qty} for name, qty in items]
    return {
        "id": number,
        "customer": {"name": by},
        "dueDate": f"2025-03-{number % 100:02}",
        "items": lines,
    }


ORDERS = [
    order(1001, "Berit Lund", ("Widget", 4), ("Gasket", 11)),
    order(1002, "Odd Haug", ("Widget", 9)),
    order(1003, "Siv Aas", ("Gasket", 2), ("Widget", 7), ("Bilge pump", 1)),
]
FILES = {
    "orders.json": json.dumps({"orders": ORDERS}),
    "shops.yaml": """customers:
  - name: Mistral
    orders:
      - number: A-17
        lines:
          - product: Arabica
            kilos: 25
      - number: A-22
        lines:
          - product: Arabica
            kilos: 40
  - name: Lorient
    orders:
      - number: A-19
        lines:
          - product: Arabica
            kilos: 15
          - product: Cups
            options:
              - name: Colour
                value: red
            pieces: 500
""",
    "deliveries.xml": """<list>
<delivery no="D-40"><line><article>Cod</article><kg>35</kg></line>
<line><article>Mussels</article><kg>12</kg></line></delivery>
<delivery no="D-41"><line><article>Cod</article><kg>8</kg></line>
<line><article>Shrimp</article><kg>21</kg></line></delivery></list>""",
    "invoice.xml": """<Invoice><ID>INV-7</ID><DueDate>2025-05-14</DueDate><Payer>Hansen</Payer>
<Sum><Amount currencyID="EUR">1709.44</Amount></Sum>
<Line><No>1</No><Quantity unitCode="MTR">250</Quantity><Item>Mooring rope</Item></Line>
<Line><No>2</No><Quantity unitCode="PCE">6</Quantity><Item>Fender</Item></Line></Invoice>""",
    "sold.json": '[{"order_id": 91, "buyer_id": 3, "lines": [{"product_id": 51, "quantity": 14},'
    ' {"product_id": 52, "quantity": 3}]}, {"order_id": 92, "buyer_id": 4, "lines": []}]',
    "buyers.csv": "buyer_id,name\n3,Sletten\n4,Vik\n",
    "ports.yaml": "- name: Kelm\n  fee: 20\n  signals: [red, blue, green]\n"
    "- name: Oln\n  fee: 30\n  signals: [white]\n",
    "products.csv": "product_id,name\n51,Copper nail\n52,Oak plank\n53,Tar bucket\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "How many widgets are in order 1003?",
            "Siv Aas — id: 1003; items.2.name: Widget; qty: 7",
        ),
        (
            "How many gaskets are in order 1001?",
            "Berit Lund — id: 1001; items.2.name: Gasket; qty: 11",
        ),
        ("How many widgets did Odd Haug order?", "Odd Haug — items.1.name: Widget; qty: 9"),
        (
            "How many kilos of Arabica are in order A-22?",
            "Mistral — orders.2.number: A-22; orders.2.lines.1.product: Arabica; kilos: 40",
        ),
        (
            "How many kilos of Arabica did Lorient order?",
            "Lorient — orders.1.lines.1.product: Arabica; kilos: 15",
        ),
        (
            "How many cups did Lorient order?",
            "Lorient — orders.1.lines.2.product: Cups; options.Colour: red; pieces: 500",
        ),
        (
            "How many kg of mussels are in delivery D-40?",
            "Deliveries: D-40 — line.2.article: Mussels; kg: 12",
        ),
        (
            "How much mooring rope was invoiced?",
            "Invoice — Line.1.No: 1; Quantity: 250 MTR; Item: Mooring rope",
        ),
        ("When is invoice INV-7 due?", "Invoice — DueDate: 2025-05-14"),
        ("What is the amount of INV-7?", "Invoice — Sum.Amount: 1709.44 EUR"),
        ("Which signals does Kelm have?", "Kelm — signals: red, blue, green"),
        ("What are the signals of Oln?", "Oln — signals: white"),
        (
            "How many oak planks are in order 91?",
            "Sletten (Sold: 91) — lines.2.product_id: Oak plank (52); quantity: 3",
        ),
    ],
)
def test_a_quantity_is_told_of_what_it_is_of(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question).text)[0] == told


def test_words_of_a_field_are_told_apart_where_they_are_written_as_one(asked: QueryEngine) -> None:
    first = passages_of(asked.answer("What is the due date of order 1002?").text)[0]
    assert first == "Odd Haug — dueDate: 2025-03-02"
