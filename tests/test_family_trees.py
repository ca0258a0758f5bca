"""Family trees of GEDCOM: each person a record, whose relatives are named in full."""

from __future__ import annotations

import time

import pytest
from read_files import read, reason

TREE = """0 HEAD
1 CHAR UTF-8
0 @I1@ INDI
1 NAME Hans /Storm/
1 SEX M
1 BIRT
2 DATE 3 MAR 1851
2 PLAC Bergen, Norway
1 DEAT
2 DATE ABT 1912
2 PLAC Hull
1 OCCU Ship's
2 CONC  carpenter
1 FAMS @F1@
0 @I2@ INDI
1 NAME Ebba /Lind/
1 FAMS @F1@
0 @I3@ INDI
1 NAME Hans /Storm/
1 BIRT
2 DATE BET MAR 1880 AND 1881
1 FAMC @F1@
0 @I4@ INDI
1 NAME Marta /Storm/
1 FAMC @F1@
1 NOTE @N1@
0 @F1@ FAM
1 HUSB @I1@
1 WIFE @I2@
1 CHIL @I3@
1 CHIL @I4@
1 CHIL @I9@
1 MARR
2 DATE 4 JUN 1875
2 PLAC Trondheim
0 @N1@ NOTE She kept the shop
1 CONT in Quay Street.
0 TRLR
"""


@pytest.mark.parametrize("text", [TREE, "\ufeff" + TREE.replace("\n", "\r\n")])
def test_a_person_has_birth_death_marriage_and_relatives_as_fields(text: str):
    father, mother, son, daughter = read("tree.ged", text).documents
    assert [d.title for d in (father, mother, son, daughter)] == [
        "Hans Storm (1851–1912)",
        "Ebba Lind",
        "Hans Storm (born 1880)",
        "Marta Storm",
    ]
    assert father.text.split("\n")[2:] == [
        "sex: male",
        "born: 1851-03-03",
        "birthplace: Bergen, Norway",
        "died: about 1912",
        "place of death: Hull",
        "occupation: Ship's carpenter",
        "spouse: Ebba Lind",
        "married: 1875-06-04",
        "place of marriage: Trondheim",
        "child.1: Hans Storm (born 1880)",
        "child.2: Marta Storm",
    ]
    assert "spouse: Hans Storm (1851–1912)" in mother.text
    assert "born: between 1880-03 and 1881" in son.text
    assert "father: Hans Storm (1851–1912)\nmother: Ebba Lind" in daughter.text
    assert "note: She kept the shop in Quay Street." in daughter.text


def test_persons_that_nothing_tells_apart_are_told_by_their_keys():
    twice = "0 @I1@ INDI\n1 NAME Bo /Vik/\n0 @I2@ INDI\n1 NAME Bo /Vik/\n"
    assert [d.title for d in read("a.ged", twice).documents] == ["Bo Vik [I1]", "Bo Vik [I2]"]


def test_what_is_no_family_tree_is_refused_in_words():
    assert reason(read("a.ged", "0 HEAD\n0 TRLR\n")) == ("the file has no persons, as 0 @I1@ INDI")


def test_hostile_trees_take_no_more_than_their_length():
    start = time.process_time()
    person = "0 @I1@ INDI\n1 NAME A /B/\n1 FAMS @F1@\n"
    for text in (
        person + "1 BIRT\n2 DATE " + "(" * 100_000,
        person + "x" * 100_000,
        person + "zz\n" * 33_000,
        person + "1 NOTE\n" + "2 CONT a\n" * 10_000,
        "".join(f"0 @I{n}@ INDI\n1 FAMS @F1@\n" for n in range(1_000))
        + "0 @F1@ FAM\n"
        + "".join(f"1 CHIL @I{n}@\n" for n in range(1_000)),
    ):
        assert read("a.ged", text).documents
    assert time.process_time() - start < 5
