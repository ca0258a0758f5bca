"""Answers of a model to thirty questions on the sample corpus, beside what is true.

Run ``python -m benchmarks.small_answers ADDRESS MODEL RESULTS METHOD [METHOD ...]``. The corpus is
indexed by rule, which asks no model; what the file of results has is not asked again. The questions
are those of ``examples/questions.jsonl`` but the global ones, and ten that stand beside this file;
three have no answer in the corpus. An answer is right where one of the expected ones stands in it,
yes or no is its first word, or it says that there is none.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.query.results import Answer

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MORE = Path(__file__).with_suffix(".jsonl")
_NONE = re.compile(r"\b(?:no|not|nothing|none|unknown|insufficient|cannot)\b", re.IGNORECASE)


def questions() -> list[Mapping[str, Any]]:
    """Return the thirty: ``question``, and the ``answers`` expected, none where there is none."""
    known = (EXAMPLES / "questions.jsonl", MORE)
    rows = [json.loads(line) for file in known for line in file.read_text("utf-8").splitlines()]
    return [
        {**row, "answers": [] if row.get("type") == "unanswerable" else row["answers"]}
        for row in rows
        if row.get("type") != "global"
    ]


def is_right(text: str, expected: Sequence[str]) -> bool:
    """Whether an answer says what is expected, or that there is no answer where none is.

    >>> is_right("It is 740 metres long [1].", ["740"]), is_right("7400 metres", ["740"])
    (True, False)
    >>> is_right("No, it does not.", ["no"]), is_right("The sources name no harpist.", [])
    (True, True)
    """
    if not expected:
        return bool(_NONE.search(text))
    if {*expected} <= {"yes", "no"}:
        return re.split(r"\W+", text.strip().lower(), maxsplit=1)[0] in expected
    return any(re.search(rf"(?<!\w){re.escape(e)}(?!\w)", text, re.IGNORECASE) for e in expected)


def asked(index: Index, method: str, model: str, results: Path) -> list[dict[str, Any]]:
    """Return what a method answers to each question; keep each answer in a file of results."""
    rows = results.read_text("utf-8").splitlines() if results.exists() else ()
    known = {(*row["of"],): row for row in map(json.loads, rows)}
    found = []
    for row in questions():
        of = (model, method, row["question"])
        if of not in known:
            began = time.perf_counter()
            try:
                kept = _kept(index.answer(row["question"], method))
            except ModelOutputError as error:  # no words, or nothing but a loop
                kept = {"text": "", "error": str(error)}
            known[of] = {"of": of, **kept, "seconds": time.perf_counter() - began}
            with results.open("a", encoding="utf-8") as file:
                print(json.dumps(known[of], ensure_ascii=False), file=file)
        found.append({**known[of], "right": is_right(known[of]["text"], row["answers"])})
    return found


def _kept(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "names_a_source": not answer.names_no_source,
        "references": answer.references,
        "unsupported": len(answer.unsupported),
        "removed": answer.references_removed,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    }


def described(found: Sequence[Mapping[str, Any]]) -> str:
    """Return what was found as a line; tokens and seconds are those of an answer."""
    counted = Counter[str]()
    for row in found:
        numbers = {name: row[name] for name in row.keys() - {"of", "text", "error"}}
        counted.update(numbers | {"none": int("error" in row), "right": int(row["right"])})
    n = max(1, len(found))
    return (
        f"{len(found)} questions, {counted['none']} without an answer, {counted['right']} right, "
        f"{counted['names_a_source']} name a source, {counted['references']} references left, "
        f"{counted['unsupported']} of them without a word of their sentence, "
        f"with {counted['removed']} removed, tokens "
        f"{counted['prompt_tokens'] / n:,.0f} {counted['completion_tokens'] / n:,.0f}, "
        f"{counted['seconds'] / n:.1f} s"
    )


def main(base_url: str, model: str, results: str, *methods: str) -> None:
    """Print what each method's answers are worth."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(
            home=home,
            profile="local",
            llm={"base_url": base_url, "model": model, "concurrency": 1, "timeout_seconds": 3600},
            extraction={"extractor": "nlp"},
            graph={"summaries": "off"},
            reports={"writer": "extractive"},
            embeddings={"embedder": "hashing"},
            query={"max_context_tokens": 700},
        )
        index = Index(home, settings)
        index.update(EXAMPLES / "corpus")
        for method in methods:
            found = asked(index, method, model, Path(results))
            print(method, described(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
