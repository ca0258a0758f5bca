"""Conversations: what a caller asked of an index, the answers, and what people say of them.

One small SQLite file in the home of the index, so that all workers of a machine share it, and a
purge of the index reaches it. What is deleted is overwritten on the disk.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import make_private
from graphrag_pipeline.store.index_store import connect_published

Verdict = Literal["good", "bad"]

_BUSY_SECONDS = 5.0
_DAY = 86_400.0
_TITLE_CHARACTERS = 200
_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, key_id TEXT NOT NULL, title TEXT NOT NULL,
    created_at REAL NOT NULL, changed_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS conversations_of_key ON conversations (key_id, changed_at);
CREATE TABLE IF NOT EXISTS answers (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    asked_at REAL NOT NULL, question TEXT NOT NULL, method TEXT NOT NULL, release TEXT NOT NULL,
    labels TEXT, chunks TEXT, answer BLOB
);
CREATE INDEX IF NOT EXISTS answers_of_conversation ON answers (conversation_id);
CREATE TABLE IF NOT EXISTS feedback (
    answer_id TEXT NOT NULL REFERENCES answers (id) ON DELETE CASCADE,
    key_id TEXT NOT NULL, verdict TEXT NOT NULL, words TEXT NOT NULL, said_at REAL NOT NULL,
    PRIMARY KEY (answer_id, key_id)
) WITHOUT ROWID;
"""
_LISTED = """
SELECT c.id, c.title, c.created_at, c.changed_at, count(a.id) AS n_questions
FROM conversations c LEFT JOIN answers a ON a.conversation_id = c.id
WHERE c.key_id = :key AND c.changed_at >= :oldest AND c.changed_at < :before AND (
    :q = '' OR instr(lower(c.title), lower(:q)) OR EXISTS (
        SELECT 1 FROM answers s
        WHERE s.conversation_id = c.id AND instr(lower(s.question), lower(:q))))
GROUP BY c.id ORDER BY c.changed_at DESC LIMIT :most
"""
_ANSWERS = """
SELECT a.*, c.key_id, f.verdict, f.words FROM answers a
JOIN conversations c ON c.id = a.conversation_id
LEFT JOIN feedback f ON f.answer_id = a.id AND f.key_id = :key
WHERE c.changed_at >= :oldest AND
"""
_FEEDBACK = """
SELECT f.said_at, f.verdict, f.words, f.key_id AS said_by, a.id AS answer_id, a.question, a.method,
       a.release, a.answer, a.chunks
FROM feedback f JOIN answers a ON a.id = f.answer_id ORDER BY f.said_at
"""


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as it was given.

    ``answer`` is that of ``/v1/query``, None where a purge has removed it; ``labels`` are those
    that its caller's key had, None: all documents. ``key_id`` is whose it is.
    """

    id: str
    conversation_id: str
    key_id: str
    asked_at: float
    question: str
    method: str
    release: str
    labels: frozenset[str] | None
    answer: dict[str, Any] | None
    verdict: Verdict | None
    words: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return what a caller is shown of it."""
        hidden = {"key_id", "labels"}
        return {name: value for name, value in vars(self).items() if name not in hidden}


class Conversations:
    """The conversations about one index. Safe to use from several threads and processes.

    Those that nothing was added to for ``days`` are gone. Each method raises StorageError where
    the file cannot be used.
    """

    def __init__(self, path: Path, days: float, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._seconds = days * _DAY
        self._clock = clock

    def keep(
        self,
        key_id: str,
        conversation: str,
        question: str,
        answer: bytes,
        *,
        method: str,
        release: str,
        labels: Collection[str] | None,
        chunks: Sequence[str] | None,
    ) -> tuple[str, str]:
        """Keep an answer, in JSON, in a conversation of its caller, or in a new one.

        ``chunks`` are those that it rests on; None where it rests on other records too. Returns the
        ids of the conversation and of the answer.
        """
        now, named = self._clock(), secrets.token_urlsafe(16)
        with self._changing() as con:
            con.execute("DELETE FROM conversations WHERE changed_at < ?", [self._oldest()])
            own = con.execute(
                "UPDATE conversations SET changed_at = ? WHERE id = ? AND key_id = ?",
                [now, conversation, key_id],
            )
            if not own.rowcount:
                conversation = secrets.token_urlsafe(16)
                title = " ".join(question.split())[:_TITLE_CHARACTERS]
                con.execute(
                    "INSERT INTO conversations VALUES (?, ?, ?, ?, ?)",
                    [conversation, key_id, title, now, now],
                )
            seen = None if labels is None else json.dumps(sorted(labels))
            rests_on = None if chunks is None else json.dumps([*chunks])
            con.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    named, conversation, now, question, method, release, seen, rests_on,
                    zlib.compress(answer),
                ],
            )  # fmt: skip
        return conversation, named

    def listed(
        self, key_id: str, *, q: str = "", before: float | None = None, most: int = 50
    ) -> list[dict[str, Any]]:
        """Return a caller's conversations, the last used first, with ``q`` in title or question."""
        before = before or float("inf")
        values = {"key": key_id, "oldest": self._oldest(), "before": before, "q": q, "most": most}
        return [dict(row) for row in self._rows(_LISTED, values)]

    def turns(self, key_id: str, conversation: str) -> list[KeptAnswer]:
        """Return the answers of a caller's conversation, the first first; none: not his."""
        sql = f"{_ANSWERS} a.conversation_id = :id AND c.key_id = :key ORDER BY a.asked_at, a.rowid"
        return self._answers(sql, conversation, key_id)

    def answer(self, id: str, key_id: str) -> KeptAnswer | None:
        """Return an answer, whosever it is, with what a caller has said of it."""
        return next(iter(self._answers(f"{_ANSWERS} a.id = :id", id, key_id)), None)

    def rename(self, key_id: str, conversation: str, title: str) -> bool:
        """Give a caller's conversation a title; return whether there is one."""
        with self._changing() as con:
            sql = "UPDATE conversations SET title = ? WHERE id = ? AND key_id = ?"
            return con.execute(sql, [title[:_TITLE_CHARACTERS], conversation, key_id]).rowcount > 0

    def delete(self, key_id: str, conversation: str) -> bool:
        """Delete a caller's conversation, and what was said of it, for good."""
        with self._changing() as con:
            sql = "DELETE FROM conversations WHERE id = ? AND key_id = ?"
            return con.execute(sql, [conversation, key_id]).rowcount > 0

    def judge(self, id: str, key_id: str, verdict: Verdict | None, words: str) -> None:
        """Note what a caller says of an answer; without a verdict, nothing any more."""
        with self._changing() as con:
            con.execute("DELETE FROM feedback WHERE answer_id = ? AND key_id = ?", [id, key_id])
            if verdict:
                row = [id, key_id, verdict, words, self._clock()]
                con.execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", row)

    def feedback(self) -> list[dict[str, Any]]:
        """Return what people said of answers, the oldest first, and the answers' texts.

        ``documents`` and ``communities`` are the ids of those that an answer cites, and of those
        whose reports were shown to who wrote it.
        """
        rows = [dict(row) for row in self._rows(_FEEDBACK, {})]
        for row in rows:
            answer = _read(row["answer"]) or {}
            row["answer"] = answer.get("text")
            row["chunks"] = json.loads(row["chunks"] or "[]")
            row["documents"], row["communities"] = _cited(answer), _communities(answer)
        return rows

    def feedback_version(self) -> str:
        """Return what changes whenever something is said or taken back; empty: nothing is said."""
        for count, last in self._rows("SELECT count(*), max(said_at) FROM feedback", {}):
            return f"{count}@{last}" if count else ""
        return ""

    def purge(self, chunks: Collection[str]) -> None:
        """Remove answers that rest on chunks other than these, or on what was made of several.

        What was said of them goes too, for it may repeat them; the verdict stays, and so do the
        questions, which are their callers' own words.
        """
        there = frozenset(chunks)
        with self._changing() as con:
            rows = con.execute("SELECT id, chunks FROM answers WHERE answer IS NOT NULL").fetchall()
            gone = [(row["id"],) for row in rows if not _stays(row["chunks"], there)]
            con.executemany("UPDATE answers SET answer = NULL, chunks = NULL WHERE id = ?", gone)
            con.executemany("UPDATE feedback SET words = '' WHERE answer_id = ?", gone)

    def _oldest(self) -> float:
        return self._clock() - self._seconds

    def _answers(self, sql: str, id: str, key_id: str) -> list[KeptAnswer]:
        rows = self._rows(sql, {"id": id, "key": key_id, "oldest": self._oldest()})
        return [_kept(row) for row in rows]

    def _rows(self, sql: str, values: dict[str, Any]) -> list[sqlite3.Row]:
        if not self._path.is_file():
            return []
        with self._opened() as con:
            return con.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as con:
            con.execute("BEGIN IMMEDIATE")
            yield con
            con.execute("COMMIT")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        # Opened each time: the home may have been restored or moved meanwhile.
        try:
            make_private(self._path)
            with contextlib.closing(
                sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
            ) as con:
                con.row_factory = sqlite3.Row
                con.execute("PRAGMA secure_delete = ON")
                con.execute("PRAGMA foreign_keys = ON")
                con.executescript(_SCHEMA)
                yield con
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"cannot use {self._path}: {error}") from None


def purge_conversations(path: Path, published: Path) -> None:
    """Remove answers that rest on what a published release does not hold."""
    with connect_published(published) as con:
        chunks = {id for (id,) in con.execute("SELECT id FROM chunks").fetchall()}
    Conversations(path, 0).purge(chunks)


def _kept(row: sqlite3.Row) -> KeptAnswer:
    values = {name: row[name] for name in row.keys() if name != "chunks"}  # noqa: SIM118
    labels = row["labels"]
    seen = None if labels is None else frozenset(json.loads(labels))
    return KeptAnswer(**{**values, "labels": seen, "answer": _read(row["answer"])})


def _read(answer: bytes | None) -> dict[str, Any] | None:
    return None if answer is None else json.loads(zlib.decompress(answer))


def _cited(answer: dict[str, Any]) -> list[str]:
    """Return the documents at the places of an answer: those to read, as Answer.places has them."""
    cites = answer.get("retrieval", {}) if answer.get("names_no_source") else answer
    places = cites.get("citations", ())
    return sorted({place["document_id"] for place in places if place["document_id"]})


def _communities(answer: dict[str, Any]) -> list[str]:
    """Return the communities whose reports, or findings of these, an answer rests on."""
    records = answer.get("retrieval", {}).get("records", ())
    named = (record["attributes"].get("community_id") for record in records)
    return sorted({id for id in named if id})


def _stays(chunks: str | None, there: frozenset[str]) -> bool:
    return chunks is not None and there.issuperset(json.loads(chunks))
