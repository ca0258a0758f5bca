"""NovelQA: its questions with their options, and the file that its competition takes.

The gold options are secret: answers are scored by the competition on Codabench (no. 2727). Its page
is for those who are logged in; the form is that of scripts which others have published for it: a
ZIP with ``res_mc/res_mc.json``, or ``res_gen/res_gen.json`` for answers without options, each an
object of titles with a list of answers in the order of the book's questions.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_evaluation.metrics.answers import bare, contains, normalized
from graphrag_evaluation.questions.documents import document_of
from graphrag_evaluation.questions.entries import BOOKS, entries, question_files
from graphrag_evaluation.questions.fields import (
    Entry,
    UnreadableEntryError,
    answers_of,
    clean,
    object_of,
    question_text,
)
from graphrag_evaluation.questions.question import Question
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_beside

if TYPE_CHECKING:
    import duckdb

MULTICHOICE, GENERATIVE = "res_mc", "res_gen"
"""The two tasks of the competition: to choose an option, and to answer without options."""

_LETTER = re.compile(
    r"(?:^|\b(?:answer|option|choice)\b(?:\s+is)?)\W*\(?([A-D])(?=$|[).:,;\s\]*])", re.IGNORECASE
)
_SECOND = re.compile(r"[).:,;\]*]")
_ANSWERS = """
SELECT question_id, text FROM experiment_answers JOIN answers USING (answer_id)
WHERE experiment = ? AND condition = ?
"""
_CONDITIONS = """
SELECT c.condition FROM conditions c SEMI JOIN experiment_answers USING (experiment, condition)
WHERE experiment = ? ORDER BY position
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def novelqa(entry: Entry) -> Iterator[Question]:
    """NovelQA: a question shows its options; complexity and aspect are the type.

    Complexity is mh, sh or dtl, the aspect such as times or meaning, as tables 3 and 6 to 11 of
    rag_vs_graphrag have them. The public files keep the gold options back: no answer then; else it
    is the option's text.
    """
    options = options_of(entry)
    listed = "; ".join(f"{letter}. {text}" for letter, text in options.items())
    yield _question(entry, options, f"{_asked(entry)} Options: {listed}" if options else "")


def novelqa_generative(entry: Entry) -> Iterator[Question]:
    """NovelQA's generative task: as :func:`novelqa`, and no options are shown."""
    yield _question(entry, options_of(entry), "")


def options_of(entry: Entry) -> dict[str, str]:
    """Return an entry's options by letter; some questions have two, and some none."""
    options = object_of(entry.get("Options") or {}, "Options")
    texts = {str(letter): clean(text) for letter, text in options.items()}
    if wrong := [letter for letter in texts if letter not in tuple("ABCD")]:
        raise UnreadableEntryError(f"Options are A to D, and one is called {clean(wrong[0])[:40]}")
    return {letter: text for letter, text in texts.items() if text}


def _asked(entry: Entry) -> str:
    return question_text(entry, "Question")


def _question(entry: Entry, options: Mapping[str, str], text: str) -> Question:
    gold = [entry.get(name) for name in ("Gold", "Answer") if entry.get(name)]
    answers = [options.get(value, value) if isinstance(value, str) else value for value in gold]
    complexity = clean(entry.get("Complexity") or entry.get("Complex"))
    kind = f"{complexity} {clean(entry.get('Aspect'))}".strip()
    return Question(text or _asked(entry), answers_of(answers, entry), type=kind)


def chosen(answer: str, options: Mapping[str, str]) -> str:
    """Return the letter of the option that an answer chooses; empty where it chooses none or two.

    That is the letter it begins with or names as its answer, or else the one option whose text it
    holds.

    >>> options = {"A": "11", "B": "9", "C": "Not 9"}
    >>> [chosen(text, options) for text in ("B", "(b) 9", "The answer is B.", "It was 11", "A man")]
    ['B', 'B', 'B', 'A', '']
    """
    text = bare(answer).strip()
    named = {match[1].upper() for match in _LETTER.finditer(text) if _is_letter(text, match)}
    named &= options.keys()
    if len(named) == 1:
        return named.pop()
    said = normalized(text)
    held = [letter for letter, option in options.items() if contains(said, normalized(option))]
    texts = {letter: normalized(options[letter]) for letter in held}
    # "Not 9" holds "9": an option within another that is held as well is not the one chosen.
    own = [a for a in held if not any(a != b and contains(texts[b], texts[a]) for b in held)]
    return own[0] if len(own) == 1 else ""


def _is_letter(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is an option's and no article, as in "A man"."""
    rest = text[match.end(1) :]
    return match[1] not in "Aa" or not rest.strip() or bool(_SECOND.match(rest))


@dataclass(frozen=True, kw_only=True)
class Submission:
    """The answers of a condition by title, as the competition takes them.

    ``unanswered`` questions have no answer, and of ``unread`` ones no option could be told: both
    are left empty.
    """

    experiment: str
    condition: str
    task: str
    answers: Mapping[str, Sequence[str]]
    unanswered: int
    unread: int
    path: Path

    @property
    def questions(self) -> int:
        """The number of questions of all books."""
        return sum(map(len, self.answers.values()))


def write_submission(
    con: duckdb.DuckDBPyConnection, experiment: str, condition: str, files: Path, target: Path
) -> Submission:
    """Write the answers of an experiment's condition into a ZIP for Codabench.

    ``files`` are those of NovelQA, a file or their folder, as they were asked: with options, or as
    ``novelqa-generative`` without. Raises InputError where the experiment asked none of them, or
    the condition is none of its.
    """
    condition = _condition(con, experiment, condition)
    texts = dict(con.execute(_ANSWERS, [experiment, condition]).fetchall())
    books = list(_books(files))
    tasks = {MULTICHOICE: novelqa, GENERATIVE: novelqa_generative}
    ids = {task: [_id(reader, e, about) for _, e, about in books] for task, reader in tasks.items()}
    task = next((task for task, asked in ids.items() if not texts.keys().isdisjoint(asked)), "")
    if not task:
        raise InputError(f"{experiment} asked no question of {files}: name the files it asked")
    answers: dict[str, list[str]] = {}
    for (title, entry, _), id in zip(books, ids[task], strict=True):
        text = texts.get(id, "")
        said = chosen(text, options_of(entry)) if task == MULTICHOICE else bare(text).strip()
        answers.setdefault(title, []).append(said)
    n_absent = sum(id not in texts for id in ids[task])
    n_empty = sum(not said for of_book in answers.values() for said in of_book)
    write_beside(target, _packed(task, answers))
    return Submission(
        experiment=experiment,
        condition=condition,
        task=task,
        answers=answers,
        unanswered=n_absent,
        unread=n_empty - n_absent,
        path=target,
    )


def _condition(con: duckdb.DuckDBPyConnection, experiment: str, name: str) -> str:
    names = [row[0] for row in con.execute(_CONDITIONS, [experiment]).fetchall()]
    if not name and len(names) == 1:
        return names[0]
    if name not in names:
        raise InputError(f"{experiment} has answers of {', '.join(names)}: name one by --condition")
    return name


def _books(files: Path) -> Iterator[tuple[str, Entry, str]]:
    """Yield the title of its book with each entry, and what its document is called."""
    for file in question_files(files):
        titles = _titles(file)
        for place, entry in entries(file):
            if not isinstance(entry, Mapping) or "Question" not in entry:
                raise InputError(f"{file}, {place}: no question of NovelQA: it has no Question")
            try:
                options_of(entry)
                about = document_of("novelqa", entry, file, place)
            except UnreadableEntryError as error:
                raise InputError(f"{file}, {place}: {error}") from None
            yield titles.get(about, about), entry, about


def _titles(file: Path) -> dict[str, str]:
    """Return the titles of books by id, from the data set's own list of them."""
    for folder in list(file.resolve().parents)[:3]:
        if (folder / BOOKS).is_file():
            books = dict(_keyed(folder / BOOKS))
            return {id: clean(book.get("title")) or id for id, book in books.items()}
    return {}


def _keyed(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, book in entries(path):
        if not isinstance(book, Mapping):
            raise InputError(f"{path}, {place}: a book with its title was expected")
        yield place.removeprefix("entry "), book


def _id(reader: Callable[[Entry], Iterator[Question]], entry: Entry, about: str) -> str:
    (question,) = reader(entry)
    return Question(question.text, document=about).id


def _packed(task: str, answers: Mapping[str, Sequence[str]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps(answers, ensure_ascii=False, indent=1)
        archive.writestr(zipfile.ZipInfo(f"{task}/{task}.json", _EPOCH), text)
    return packed.getvalue()
