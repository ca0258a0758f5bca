"""The comparison with treebanks: which signs of a sentence are proper nouns, and what is right."""

from __future__ import annotations

from pathlib import Path

from benchmarks.treebanks import score, sentences

TREEBANK = """# sent_id = 1
# text = Du parc, Ann Lee voit Toulouse.
1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_
1\tDe\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\t_\t3\tdet\t_\t_
3\tparc\tparc\tNOUN\t_\t_\t6\tobl\t_\tSpaceAfter=No
4\t,\t,\tPUNCT\t_\t_\t3\tpunct\t_\t_
5\tAnn\tAnn\tPROPN\tNNP\t_\t7\tnsubj\t_\t_
6\tLee\tLee\tPROPN\tNNP\t_\t5\tflat\t_\t_
6.1\tqui\tqui\tPRON\t_\t_\t_\t_\t_\t_
7\tvoit\tvoir\tVERB\t_\t_\t0\troot\t_\t_
8\tToulouse\tToulouse\tX\tSP+NNP\t_\t7\tobj\t_\tSpaceAfter=No
9\t.\t.\tPUNCT\t_\t_\t7\tpunct\t_\t_

# text = Tom Young vit à Madrid.
1\tTom\ttom\tNOUN\t_\t_\t3\tnsubj\t_\t_
2\tYoung\tyoung\tADJ\t_\t_\t1\tamod\t_\t_
3\tvit\tvivre\tVERB\t_\t_\t0\troot\t_\t_
4\tà\tà\tADP\t_\t_\t5\tcase\t_\t_
5\tMadrid\tMadrid\tPROPN\t_\t_\t3\tobl\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""


def test_signs_of_proper_nouns_are_marked_in_each_sentence(tmp_path: Path) -> None:
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    marked = [
        "".join(sign for sign, is_proper in zip(text, proper, strict=True) if is_proper)
        for text, proper in sentences(path)
    ]
    assert marked == ["AnnLeeToulouse", "Madrid"]


def test_names_found_are_right_where_the_treebank_says_so(tmp_path: Path) -> None:
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    found, right = score(path)
    assert (found["PERSON"], right["PERSON"]) == (2, 1)
    assert (found["GEO"], right["GEO"]) == (2, 2)
