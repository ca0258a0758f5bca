"""Theorems of LaTeX with their heads, definitions in them, and which of a series is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import only, read

from graphrag_pipeline.query import QueryEngine

PAPER = r"""\documentclass{article}
\newtheorem{theorem}{Theorem}[section]
\newtheorem{lemma}[theorem]{Lemma}
\newtheorem*{note}{Note}
\title{Knots}\author{Ida Varde}
\begin{document}\maketitle
\section{Hitches}
\begin{theorem}[Varde's knot]\label{t}
\index{knot!half}
Every hitch is half a knot.
\indexdef{knot}{of a rope}
It holds.
\end{theorem}
\begin{proof} By Lemma (\ref{l}), it is so. \end{proof}
\begin{lemma} It slips. \end{lemma}
\section{Bends}
\begin{lemma}\label{l} Two ropes meet. \end{lemma}
\begin{note} None. \end{note}
\begin{defn}
  \label{d}
  A rope with one end is a \emph{lone bend} if nobody holds it.
\end{defn}
A lone bend is hardly seen, and a lone bend may slip. The lone bend has many names.
\end{document}
"""
SERIES = [
    (3, "Lamps of the quay", "Lamps are lit at dusk. A lamp is white."),
    (4, "Bell on the pier", "Adds a bell to the pier, which rings in fog. It is of brass."),
    (5, "Rules of bells", "This adds to HEP 4. The bell of HEP 4 on the pier is rung by hand."),
    (6, "Fees of the quay", "Quay fees are paid at noon. HEP 2 introduced pilots of the sound."),
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    files = {
        f"hep-{n}.txt": f"HEP: {n}\nTitle: {title}\nAuthor: Bo Lund\nStatus: Draft\n\n{text}\n"
        for n, title, text in SERIES
    }
    yield from index_asked(files | {"knots.tex": PAPER}, tmp_path_factory)


def first(engine: QueryEngine, question: str) -> str:
    return engine.answer(question).text.partition("\n- ")[2].partition("\n- ")[0]


def test_theorems_begin_with_their_heads_and_numbers():
    paragraphs = only(read("a.tex", PAPER)).text.split("\n\n")
    assert [" ".join(each.split()) for each in paragraphs[2:]] == [
        "## Hitches",
        "Theorem 1.1 (Varde's knot). Every hitch is half a knot. It holds.",
        "Proof. By Lemma, it is so.",
        "Lemma 1.2. It slips.",
        "## Bends",
        "Lemma 2.1. Two ropes meet.",
        "Note. None.",
        "Definition. A rope with one end is a lone bend if nobody holds it.",
        "A lone bend is hardly seen, and a lone bend may slip. The lone bend has many names.",
    ]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What does Theorem 1.1 say?", "Every hitch is half a knot."),
        ("What is the definition of a lone bend?", "A rope with one end is a lone bend if"),
        ("Which HEP introduced the bell on the pier?", "HEP 4: Bell on the pier — Adds a bell"),
        ("Which HEP introduced pilots of the sound?", "HEP 2 introduced pilots of the sound."),
    ],
)
def test_definitions_theorems_and_what_is_one_of_a_series_are_told(engine, question, said):
    assert said in first(engine, question)
