"""Chores of chat programs: titles, tags, follow-ups, which they ask of the model in a chat of their
own. They are no questions on documents: nothing is retrieved for them.

A chore is told by the form of its prompt, never by its words alone: Open WebUI's begin with
``### Task:`` and hold the conversation between two lines of their own, LibreChat's begin with a
fixed sentence, and the conversation follows its heading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_server.attached import without_attached

_MOST_FOLLOW_UPS = 3
_MOST_TAGS = 3
_TITLE_WORDS, _TITLE_CHARACTERS = 8, 60
_MERGED_CHARACTERS = 8000

_TASK = re.compile(r"\s*###\s*Task:\s*\n")
_HISTORY = re.compile(r"^<chat_history>\s*\n(.*?)^</chat_history>\s*$", re.MULTILINE | re.DOTALL)
_COMPACTED = re.compile(
    r"^### Messages Being Compacted:\n(.*?)^### Recent Messages", re.MULTILINE | re.DOTALL
)
# A question with passages found elsewhere begins with a task, too: it is a question.
_WITH_CONTEXT = re.compile(r"^<(?:context|source|user_query)\b", re.MULTILINE)
_KEYS = re.compile(r'"(title|tags|follow_ups|queries|prompt|text)"\s*:')
_TURN = re.compile(r"^(USER|ASSISTANT|SYSTEM|User|Human|AI|Assistant):[ \t]*", re.MULTILINE)
_FIXED = (
    (
        "title",
        re.compile(
            r"Provide a concise,? 5-word-or-less title for the conversation\b.*?"
            r"^Conversation:\n(.*)",
            re.MULTILINE | re.DOTALL,
        ),
    ),
    (
        "title",
        re.compile(
            r"Please generate a concise title \(max \d+ characters\) for a conversation that "
            r"starts with:\n(.*?)\s*Title:\s*\Z",
            re.DOTALL,
        ),
    ),
    (
        "language and title",
        re.compile(
            r"Analyze this conversation and provide:\n1\. The detected language of the "
            r"conversation\n2\. A concise title in the detected language[^\n]*\n\s*\n(.*)",
            re.DOTALL,
        ),
    ),
    (
        "emoji",
        re.compile(
            r"Your task is to reflect the speaker's likely facial expression through a fitting "
            r"emoji\b.*?^Message: ```(.*)```",
            re.MULTILINE | re.DOTALL,
        ),
    ),
    (
        "merge",
        re.compile(
            r"You have been provided with a set of responses from various models to the latest "
            r"user query:.*?^Responses from models:(.*)",
            re.MULTILINE | re.DOTALL,
        ),
    ),
)
# Three words or more, up to the last sign that ends a clause.
_CLAUSE = re.compile(r"(\S+ \S+ .*\S)[,;:?!.](?: |$)")
_RESPONSE = re.compile(r'"""(.*?)"""', re.DOTALL)
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'’-]+(?: [A-ZÀ-ÖØ-Þ][\w'’-]+)*")
_BEGINNINGS = frozenset(
    [
        *("who", "what", "when", "where", "which", "why", "how", "is", "are", "was", "were"),
        *("do", "does", "did", "can", "could", "the", "a", "an", "in", "on", "of", "and", "tell"),
    ]
)
_KEYED = ("title", "tags", "follow_ups", "queries", "prompt", "text")

FollowUps = Callable[[str, str, int], Sequence[str]]
"""Gives questions that may come next: of what was asked, what was answered, and at most so many."""


@dataclass(frozen=True)
class Chore:
    """A text that a chat program wants for itself, and the conversation it wants it of.

    ``kind`` is the key of the JSON that it asks for (title, tags, follow_ups, queries, prompt,
    text); or ``language and title``, ``emoji``, ``merge``, ``summary``; or ``other``. ``is_json``:
    the answer is a JSON object, else a bare text.
    """

    kind: str
    prompt: str
    conversation: str
    is_json: bool

    @property
    def asked(self) -> list[str]:
        """The messages of the user, oldest first."""
        texts = [text for role, text in self._turns if role in ("user", "human") and text]
        return [without_attached(text) for text in texts]

    @property
    def answered(self) -> str:
        """The last answer."""
        answers = [text for role, text in self._turns if role in ("assistant", "ai")]
        return answers[-1] if answers else ""

    @property
    def _turns(self) -> list[tuple[str, str]]:
        parts = _TURN.split(self.conversation)
        first = [("user", parts[0].strip())] if parts[0].strip() else []
        pairs = zip(parts[1::2], parts[2::2], strict=True)
        return [*first, *((role.lower(), text.strip()) for role, text in pairs)]

    def by_rule(self, follow_ups: FollowUps, keys: Sequence[str] = ()) -> str:
        """Return what can be said without a model, in the form that is asked for.

        ``keys`` are those of the object that the request wants, where it says so.
        """
        last = self.asked[-1] if self.asked else ""
        match self.kind:
            case "title" | "language and title":
                value: Any = title_of(self.asked[0] if self.asked else "")
            case "tags":
                value = tags_of(" ".join(self.asked))
            case "follow_ups":
                asked = "\n".join(self.asked)
                value = [*follow_ups(asked, self.answered, _MOST_FOLLOW_UPS)]
            case "queries":
                value = [last] if last else []
            case "text":
                value = ""
            case "emoji":
                value = "💬"
            case "merge":
                response = _RESPONSE.search(self.conversation)
                value = (response[1] if response else self.conversation).strip()
            case "summary":
                value = self.conversation.strip()[-_MERGED_CHARACTERS:]
            case _:
                value = last
        return self._written(value, keys)

    def of_model(self, text: str) -> str:
        """Return what a model has said in the form that is asked for.

        Raises ModelOutputError where it is not in that form.
        """
        if not self.is_json:
            return text.strip().strip('"').strip() if self.kind == "title" else text.strip()
        value = parse_json_object(text)
        if self.kind in _KEYED and self.kind not in value:
            raise ModelOutputError(f'the answer must be a JSON object with "{self.kind}"')
        return json.dumps(value, ensure_ascii=False)

    def _written(self, value: Any, keys: Sequence[str]) -> str:
        if self.kind == "language and title":
            names = keys or ("language", "title")
            written = {name: value if name == "title" else "" for name in names}
            return json.dumps(written, ensure_ascii=False)
        if not self.is_json:
            return str(value)
        return json.dumps({self.kind: value}, ensure_ascii=False)


def chore_of(messages: Sequence[Mapping[str, str]]) -> Chore | None:
    """Return the chore that some messages (role, content) are, or None where they are a question.

    It stands alone: in a conversation that was answered before, a prompt is the user's own.
    """
    if not messages or messages[-1]["role"] != "user":
        return None
    if any(each["role"] not in ("system", "developer", "user") for each in messages):
        return None
    prompt = messages[-1]["content"]
    return _of_task(prompt) or _of_sentence(prompt)


def _of_task(prompt: str) -> Chore | None:
    if not _TASK.match(prompt):
        return None
    if compacted := _COMPACTED.search(prompt):
        return Chore("summary", prompt, compacted[1], is_json=False)
    history = _HISTORY.search(prompt)
    if history is None or _WITH_CONTEXT.search(prompt, 0, history.start()):
        return None
    keys = _KEYS.findall(prompt, 0, history.start())
    if not keys:
        is_title = "title" in prompt[: history.start()].lower()
        return Chore("title" if is_title else "other", prompt, history[1], is_json=False)
    return Chore(keys[0], prompt, history[1], is_json=True)


def _of_sentence(prompt: str) -> Chore | None:
    for kind, form in _FIXED:
        if match := form.match(prompt):
            return Chore(kind, prompt, match[1], is_json=kind == "language and title")
    return None


def title_of(question: str) -> str:
    """Return a question as a title: its first words, on one line, without its mark at the end.

    One that is too long ends after a clause, or else says that more was asked.
    """
    words = question.split()
    title = " ".join(words[:_TITLE_WORDS])
    while len(title) >= _TITLE_CHARACTERS and " " in title:
        title = title.rpartition(" ")[0]
    is_cut = len(title.split()) < len(words)
    clause = _CLAUSE.match(title) if is_cut else None
    title = (clause[1] if clause else title)[:_TITLE_CHARACTERS].strip()
    title = title.rstrip("?？!.。,:;").strip('"“”')
    return (f"{title}…" if is_cut and not clause else title) or "New chat"


def tags_of(text: str) -> list[str]:
    """Return the names in what was asked as tags; General where there is none."""
    names: dict[str, None] = {}
    for match in _NAME.finditer(text):
        words = match[0].split(" ")
        while words and words[0].lower() in _BEGINNINGS:
            words = words[1:]
        if words:
            names.setdefault(" ".join(words))
    return [*names][:_MOST_TAGS] or ["General"]
