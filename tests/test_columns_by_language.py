"""Columns of tables say what their values are in nine languages, and firms by their legal forms."""

from __future__ import annotations

import pytest

from graphrag_pipeline.core.records import (
    field_head,
    field_words,
    name_columns,
    names_nothing,
)
from graphrag_pipeline.extraction.rules.nlp import names_in
from graphrag_pipeline.extraction.rules.records import names_in_field, type_of_name


def kind(path: str, value: str) -> str:
    return names_in_field("field", path, value)[0][3]


@pytest.mark.parametrize(
    ("person", "place", "firm"),
    [
        ("Ansprechpartner", "Wohnort", "Lieferant"),
        ("Nom du responsable", "Lieu de naissance", "Fournisseur"),
        ("Responsable", "Ciudad de origen", "Proveedor"),
        ("Referente", "Città", "Fornitore"),
        ("Funcionário", "Cidade", "Empregador"),
        ("Medewerker", "Woonplaats", "Leverancier"),
        ("Kontaktperson", "Bostadsort", "Leverantör"),
        ("Forfatter", "Sted", "Rederi"),
        ("Pracownik", "Miasto", "Dostawca"),
    ],
)
def test_a_column_says_in_its_language_what_its_values_are(
    person: str, place: str, firm: str
) -> None:
    assert kind(person, "Wenka Oltrup") == "PERSON"
    assert kind(place, "Varnsum") == "GEO"
    assert kind(firm, "Oltrup Varn") == "ORGANIZATION"


def test_a_short_given_name_makes_no_firm_and_a_kafé_is_one() -> None:
    assert {kind("Tenant", name) for name in ("Mo Abdi", "Bo Li")} == {"PERSON"}
    assert {kind("customer.name", name) for name in ("Sjø Kafé", "Solveig Hotell")} == {
        "ORGANIZATION"
    }


@pytest.mark.parametrize(
    "text",
    [
        "李秀英是苏州大学的教授。\n公司总部设在上海。\n",
        "山田太郎は京都大学の教授である。\n雪が降る。\n",
    ],
)
def test_a_sentence_in_a_line_of_its_own_is_no_name(text: str) -> None:
    assert not [name for name in names_in(text) if name.endswith("。")]


def test_first_aid_is_nobody_s_first_name_and_what_begins_with_a_number_no_name() -> None:
    assert name_columns(("First", "Last")) == ("First", "Last")
    assert name_columns(("First Aid", "Last Name")) == ("", "")
    assert names_nothing("3 Beds")


@pytest.mark.parametrize(
    ("person", "place", "firm", "key"),
    [
        ("Ответственный", "Город", "Поставщик", "Номер"),
        ("联系人", "城市", "供应商", "编号"),
        ("担当者", "住所", "会社", "番号"),
        ("담당자", "도시", "회사", "번호"),
        ("المسؤول", "المدينة", "المورد", "رقم"),
        ("מנהל", "עיר", "חברה", "מספר"),
        ("ग्राहक", "शहर", "कंपनी", "संख्या"),
        ("ลูกค้า", "เมือง", "บริษัท", "รหัส"),
    ],
)
def test_columns_in_other_scripts_say_it_as_well(
    person: str, place: str, firm: str, key: str
) -> None:
    kinds = {person: "PERSON", place: "GEO", firm: "ORGANIZATION"}
    assert {path: kind(path, "Wenka Oltrup") for path in kinds} == kinds
    assert field_words(key) == (key.lower(),)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("رنا العطار", "PERSON"),
        ("裴雅琴", "PERSON"),
        ("海云电子有限公司", "ORGANIZATION"),
        ("대전", "GEO"),
    ],
)
def test_what_a_record_is_called_says_its_type_in_other_scripts(name: str, expected: str) -> None:
    assert type_of_name(name) == expected


def test_a_place_is_one_though_its_name_is_a_word() -> None:
    assert [kind("city", name) for name in ("Gent", "Reading", "Nice")] == ["GEO"] * 3


@pytest.mark.parametrize("name", ["Café Lumen", "Atelier Roussel", "Bäckerei Thomsen"])
def test_a_customer_that_says_what_it_is_is_a_firm(name: str) -> None:
    assert kind("customer", name) == "ORGANIZATION"


@pytest.mark.parametrize("name", ["Hunter Smith", "Rose Miller", "Ines Falkenberg"])
def test_a_customer_whose_name_is_a_word_as_well_is_a_person(name: str) -> None:
    assert kind("customer", name) == "PERSON"


@pytest.mark.parametrize(
    "name", ["Belform NV", "Nordlys AS", "Stora Enso Oyj", "Hansen & Söhne KG", "Renault SA"]
)
def test_a_legal_form_makes_a_firm(name: str) -> None:
    assert type_of_name(name) == "ORGANIZATION"


def test_words_of_a_field_are_those_of_its_language() -> None:
    assert field_words("Plaats") == ("plaats",)
    assert field_words("Kunden-Nr.") == ("kunden", "nr")
    assert [field_head(f) for f in ("Name des Kunden", "number of guests")] == ["kunden", "number"]
