import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.core.text import (
    MAX_TERM_CHARS,
    STOP_WORDS,
    names_apart,
    normalize_title,
    terms,
    terms_batch,
)


@given(st.text())
def test_any_text_gives_terms_without_white_space_or_capitals_and_none_too_long(text):
    for term in terms(text):
        assert term
        assert term == term.casefold()
        assert not any(character.isspace() for character in term)
        assert len(term) <= MAX_TERM_CHARS


@given(st.lists(st.text()))
def test_the_batch_form_is_the_terms_joined_by_spaces(texts):
    assert terms_batch(texts) == [" ".join(terms(text)) for text in texts]


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_composed_decomposed_and_upper_case_forms_have_the_same_terms(text):
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_short_cut_for_ascii_agrees_with_the_general_way(text):
    assert terms(text) == terms(text + " ’")


def test_stop_words_are_dropped_and_everything_else_is_kept():
    assert terms("Who was the wife of the man that they say is a king?") == [
        "wife",
        "man",
        "say",
        "king",
    ]
    assert terms(" ".join(STOP_WORDS)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café Łódź Ærø", "cafe lodz aero"),
        ("STRASSE", "straße"),
        ("İstanbul", "istanbul"),
        ("the wizard’s hat", "wizard's hat"),
        ("O’Brien", "O'Brien"),
        ("U.S. Army", "US army"),
        ("ﬁne ２０２４", "fine 2024"),
        ("1,890 people", "1890 people"),
        ("co\u00adoperate", "cooperate"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_spellings_of_one_thing_have_the_same_terms(one, other):
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    "forms",
    [
        "city cities",
        "release releases released releasing",
        "stop stops stopped stopping",
        "make makes making",
        "study studies studied studying",
        "open opens opened opening",
        "locate locates located locating",
        "church churches",
        "movie movies",
        "idea ideas",
        "manage managed managing",
        "occur occurred occurring",
    ],
)
def test_inflected_forms_share_a_term(forms):
    assert len(set(terms(forms))) == 1


def test_names_that_look_inflected_stay_whole():
    names = (
        "james paris texas charles wales williams beijing boeing sterling alfred ahmed socrates "
        "mercedes brussels jones christmas marcus chaos sacred king viking united news"
    )
    assert " ".join(terms(names)) == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都", ["東京", "京都"]),
        ("中", ["中"]),
        ("서울시", ["서울", "울시"]),
        ("tower東京tower", ["tower", "東京", "tower"]),
        ("がギ", ["がギ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Müller トム・ハンクス", ["muller", "トム", "ハン", "ンク", "クス"]),
    ],
)
def test_scripts_without_spaces_give_bigrams_and_others_give_words(text, expected):
    assert terms(text) == expected


def test_numbers_versions_and_identifiers_are_kept():
    assert terms("Python 3.11.7 cost 1,234.56 in 1990s, snake_case v2 1,2") == [
        "python",
        "3.11.7",
        "cost",
        "1234.56",
        "1990s",
        "snake",
        "case",
        "v2",
        "1",
        "2",
    ]


def test_a_million_tokens_take_seconds():
    text = "The wizards of Łódź were studying 1,890 ancient opening ceremonies near rivers. " * 80
    started = time.process_time()
    terms_batch([text] * 1000)
    assert time.process_time() - started < 10


def test_titles_are_compared_without_case_quotes_and_stray_punctuation():
    assert normalize_title(" “Marie\n CURIE”. ") == normalize_title("marie curie")
    assert normalize_title("...") == "..."


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (["Brandvik Line", "brandvik", "Orlen Dam"], ["Brandvik Line", "Orlen Dam"]),
        (["brandvik", "Brandvik Line", "Orlen Dam"], ["brandvik", "Orlen Dam"]),
        (["Orlen Dam", "Sund", "Ulm"], ["Orlen Dam", "Sund"]),
    ],
)
def test_of_names_that_hold_each_other_the_first_is_shown(names, apart):
    assert names_apart(names, 2) == apart
