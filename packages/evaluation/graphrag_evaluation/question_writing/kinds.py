"""Questions of five kinds, each with what a complete answer must say.

After AutoQ of benchmark-qed, in our own wording. Questions on *data* start from passages of the
corpus, one of each of its clusters:

- ``data-local`` asks for facts of one passage;
- ``data-global`` asks for what runs through many: a model finds the themes that local questions
  share, and asks about each from the facts that answer them;
- ``data-linked`` asks for what only facts of several passages tell that share a name.

Questions on *activities* start from people who would use the corpus and their tasks:

- ``activity-local`` asks for particular facts that full text search finds for a task;
- ``activity-global`` is GraphRAG's Algorithm 1; its assertions are written from what full text
  search finds for each question.

An assertion rests on sentences of the corpus, which are the question's gold passages; a question
without one is left out, and so is a global or linked one that rests on a single passage. Twice as
many are asked for as wanted, and those that are new are taken from every passage, theme, name and
task in turn. There the reference generates more and selects by embedding; it lets a model also
validate what it wrote, where here the numbers of the facts are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from graphrag_evaluation.inquiring import Wording
from graphrag_evaluation.judging.assertions import WRITING, parse_assertions
from graphrag_evaluation.question_writing.drafts import (
    MOST_ASSERTIONS,
    Draft,
    DraftFact,
    drafts_in,
    numbered,
    sentences_of,
    wording,
)
from graphrag_evaluation.question_writing.generating import (
    MOST,
    Algorithm1,
    Brief,
    Generated,
    Numbers,
)
from graphrag_evaluation.question_writing.model_calls import (
    LONGEST,
    GeneratingCalls,
    Item,
    SeenQuestions,
    listing,
)
from graphrag_evaluation.questions.fields import sourced
from graphrag_evaluation.questions.question import Question
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed, text

if TYPE_CHECKING:
    from graphrag_evaluation.questions.question import Passage

LOCAL, GLOBAL, LINKED = "data-local", "data-global", "data-linked"
ACTIVITY_LOCAL, ACTIVITY_GLOBAL = "activity-local", "activity-global"
KINDS: Final = (LOCAL, GLOBAL, LINKED, ACTIVITY_LOCAL, ACTIVITY_GLOBAL)
"""The kinds, in the order in which they are made."""
PASSAGES: Final = 6
"""So many passages are searched for a task, or for a question that needs the whole."""
TWICE: Final = 2
_FEWEST, _MOST_AT_ONCE = 12, 10
_FACTS = 60
"""A theme or a name is asked about by no more facts than this."""
WORDINGS: Final = {
    LOCAL: wording("eval_data_local", named=True),
    GLOBAL: wording("eval_data_global"),
    LINKED: wording("eval_data_linked"),
    ACTIVITY_LOCAL: wording("eval_activity_local"),
}
THEMES: Final = Wording(
    name="themes",
    prompt="eval_themes",
    json_schema=listing(
        "themes", MOST, closed(theme=text(LONGEST), questions=listed(INTEGER, MOST))
    ),
)

Search = Callable[[str], list["Passage"]]
"""Full text search of the corpus: the passages it finds, best first."""


@dataclass(frozen=True)
class WantedKinds:
    """``number`` questions of each of some kinds; at most so many people, and tasks of each."""

    kinds: tuple[str, ...]
    number: int = 20
    personas: int = 5
    tasks: int = 5

    def __post_init__(self) -> None:
        """Raise InputError for a kind that there is not, or a number out of range."""
        if strangers := [kind for kind in self.kinds if kind not in KINDS]:
            raise InputError(f"no kind of questions {strangers[0]!r}: choose of {', '.join(KINDS)}")
        if not 1 <= self.number <= MOST:
            raise InputError(f"the number of questions of a kind must be from 1 to {MOST}")
        Numbers(self.personas, self.tasks, 1)

    @property
    def needs_passages(self) -> bool:
        """Whether it starts from passages: themes and names are those of local questions."""
        return any(kind in self.kinds for kind in (LOCAL, GLOBAL, LINKED))

    @property
    def n_passages(self) -> int:
        """The number of passages asked about; themes and shared names take some to be found."""
        is_base = GLOBAL in self.kinds or LINKED in self.kinds
        return max(self.number, _FEWEST if is_base else 0) if self.needs_passages else 0

    @property
    def has_activities(self) -> bool:
        """Whether it starts from people and their tasks."""
        return any(kind in self.kinds for kind in (ACTIVITY_LOCAL, ACTIVITY_GLOBAL))

    @property
    def activities(self) -> Numbers:
        """As many people and tasks as the number of questions takes."""
        personas = min(self.personas, self.number)
        tasks = min(self.tasks, ceil(self.number / personas))
        return Numbers(personas, tasks, ceil(self.number / (personas * tasks)))


@dataclass(frozen=True)
class Corpus:
    """Material that questions are made from: a description, sampled passages, and full text search.

    ``chunk_tokens`` is the length of what it finds, on average.
    """

    description: str
    passages: Sequence[Passage]
    search: Search
    chunk_tokens: float = 0.0


@dataclass(frozen=True)
class _Pool:
    """Drafts from one passage, theme, name or task."""

    drafts: Sequence[Draft]
    brief: Brief | None = None


class KindsOfQuestions:
    """One run that makes questions of some kinds."""

    def __init__(self, asking: GeneratingCalls, wanted: WantedKinds, corpus: Corpus) -> None:
        self._asking = asking
        self._wanted = wanted
        self._corpus = corpus
        self._seen = SeenQuestions()
        self._duplicates = 0
        self._lacking: list[str] = []

    async def generated(self) -> Generated:
        """Return the questions by kind, in the order of ``KINDS``."""
        questions: list[Question] = []
        drafts = await self._locals() if self._wanted.needs_passages else []
        if LOCAL in self._wanted.kinds:
            questions += self._take(LOCAL, [_Pool(of_passage) for of_passage in drafts])
        flat = [draft for of_passage in drafts for draft in of_passage]
        if GLOBAL in self._wanted.kinds:
            questions += self._take(GLOBAL, await self._grouped(GLOBAL, await self._themes(flat)))
        if LINKED in self._wanted.kinds:
            questions += self._take(LINKED, await self._grouped(LINKED, self._names(flat)))
        if self._wanted.has_activities:
            questions += await self._activities()
        return Generated(
            tuple(questions), self._duplicates, (*self._lacking, *self._asking.failures)
        )

    async def _locals(self) -> list[list[Draft]]:
        """Return the drafts from each passage."""
        places = range(len(self._corpus.passages))
        facts = [sentences_of(self._corpus.passages[place], place) for place in places]
        found = await self._asking.for_each(
            facts, lambda of_passage: self._drafts(LOCAL, of_passage, TWICE)
        )
        return [
            [_with_names_of(draft, self._corpus.passages[place].text) for draft in of_passage]
            for place, of_passage in enumerate(found)
        ]

    async def _themes(self, drafts: Sequence[Draft]) -> dict[str, list[Draft]]:
        """Return the drafts of each theme that a model finds in several passages."""
        if not drafts:
            return {}
        shown = "\n".join(f"{n}. {draft.text}" for n, draft in enumerate(drafts, 1))

        async def ask(number: int) -> list[tuple[str, list[int]]]:
            return await self._asking.ask(THEMES, _themes_in, number=str(number), queries=shown)

        most = n_themes(self._wanted.number)
        (themes,) = await self._asking.for_each([most], ask)
        groups = {
            theme: [drafts[n - 1] for n in dict.fromkeys(numbers) if 0 < n <= len(drafts)]
            for theme, numbers in themes[:most]
        }
        return _in_several_places(groups)

    def _names(self, drafts: Sequence[Draft]) -> dict[str, list[Draft]]:
        """Return the drafts on each name that several passages share, the most shared first."""
        groups: dict[str, list[Draft]] = {}
        written: dict[str, str] = {}
        for draft in drafts:
            for name in draft.names:
                groups.setdefault(name.casefold(), []).append(draft)
                written.setdefault(name.casefold(), name)
        shared = _in_several_places(groups)
        in_order = sorted(shared, key=lambda name: (-len(_places(shared[name])), name))
        alike = {tuple(map(id, shared[name])): name for name in reversed(in_order)}
        return {
            written[name]: shared[name]
            for name in [name for name in in_order if name in alike.values()][: self._wanted.number]
        }

    async def _grouped(self, kind: str, groups: Mapping[str, Sequence[Draft]]) -> list[_Pool]:
        """Return drafts made from the facts of each group that need several passages."""
        if not groups:
            return []
        number = min(ceil(TWICE * self._wanted.number / len(groups)), _MOST_AT_ONCE)

        async def ask(group: str) -> list[Draft]:
            facts = [fact for draft in groups[group] for fact in draft.stated()][:_FACTS]
            return await self._drafts(kind, facts, number, text=group)

        found = await self._asking.for_each(list(groups), ask)
        return [_Pool([draft for draft in of if len(draft.places) > 1]) for of in found]

    async def _activities(self) -> list[Question]:
        numbers = self._wanted.activities
        algorithm = Algorithm1(self._asking, numbers, self._corpus.description, self._seen)
        briefs = await algorithm.briefs()
        questions: list[Question] = []
        if ACTIVITY_LOCAL in self._wanted.kinds:
            found = await self._asking.for_each(briefs, self._of_task)
            pools = [_Pool(*each) for each in zip(found, briefs, strict=True)]
            questions += self._take(ACTIVITY_LOCAL, pools)
        if ACTIVITY_GLOBAL in self._wanted.kinds:
            await algorithm.fill(briefs)
            self._duplicates += sum(len(brief.left_out) for brief in briefs)
            asked = [Draft(text, ()) for brief in briefs for text in brief.kept]
            of = {text: brief for brief in briefs for text in brief.kept}
            in_turn = _in_turn([[d for d in asked if of[d.text] is brief] for brief in briefs])
            kept = list(in_turn)[: self._wanted.number]
            self._note(ACTIVITY_GLOBAL, len(kept))
            stated = await self._asking.for_each(kept, self._asserted)
            questions += [
                draft.question(ACTIVITY_GLOBAL, of[draft.text].persona, of[draft.text].task)
                for draft, with_assertions in zip(kept, stated, strict=True)
                for draft in (with_assertions or [draft])
            ]
        return questions

    async def _of_task(self, brief: Brief) -> list[Draft]:
        facts = self._found(brief.task)
        number = TWICE * self._wanted.activities.questions
        return await self._drafts(ACTIVITY_LOCAL, facts, number, text=brief.text)

    async def _asserted(self, draft: Draft) -> list[Draft]:
        """Return a question with the assertions that a model writes from what is found for it."""
        if not (facts := self._found(draft.text)):
            return []
        said = await self._asking.ask(
            WRITING,
            parse_assertions,
            question=draft.text,
            context=numbered(facts),
            number=str(MOST_ASSERTIONS),
        )
        kept = sourced(said["assertions"], len(facts))
        stated = [(text, tuple(facts[n - 1] for n in numbers)) for text, numbers in kept.items()]
        return [Draft(draft.text, tuple(stated[:MOST_ASSERTIONS]))]

    def _found(self, text: str) -> list[DraftFact]:
        return [
            fact
            for place, passage in enumerate(self._corpus.search(text))
            for fact in sentences_of(passage, place)
        ]

    async def _drafts(
        self, kind: str, facts: Sequence[DraftFact], number: int, **values: str
    ) -> list[Draft]:
        """Return what a model drafts from facts; nothing is asked where there is none."""
        if not facts:
            return []
        field = "facts" if kind in (GLOBAL, LINKED) else "context"
        return await self._asking.ask(
            WORDINGS[kind],
            lambda text: drafts_in(text, facts),
            number=str(min(number, _MOST_AT_ONCE)),
            **{field: numbered(facts, placed=kind == LINKED)},
            **values,
        )

    def _take(self, kind: str, pools: Sequence[_Pool]) -> list[Question]:
        """Return so many questions as are wanted that are new, from each pool in turn."""
        kept: list[Question] = []
        pairs = [[(draft, pool.brief) for draft in pool.drafts] for pool in pools]
        for draft, brief in _in_turn(pairs):
            if len(kept) == self._wanted.number:
                break
            if self._seen.is_new(draft.text):
                who = (brief.persona, brief.task) if brief else ()
                kept.append(draft.question(kind, *who))
            else:
                self._duplicates += 1
        self._note(kind, len(kept))
        return kept

    def _note(self, kind: str, number: int) -> None:
        if number < self._wanted.number:
            self._lacking.append(f"{kind}: {number} of {self._wanted.number} questions{_WHY[kind]}")


_WHY: Mapping[str, str] = {
    LOCAL: ": the passages gave no more",
    GLOBAL: ": no more that need several passages",
    LINKED: ": no more that need several passages that share a name",
    ACTIVITY_LOCAL: ": what is found for the tasks gave no more",
    ACTIVITY_GLOBAL: ": the model asked no more that are new",
}


def n_themes(number: int) -> int:
    """Return how many themes so many questions are asked about, at most."""
    return max(2, ceil(number / 2))


def _themes_in(answer: str) -> list[tuple[str, list[int]]]:
    return [
        (" ".join(entry["theme"].split()), [n for n in numbers if type(n) is int])
        for entry in parse_json_list(answer, "themes")
        if isinstance(entry, Mapping)
        and isinstance(entry.get("theme"), str)
        and isinstance(numbers := entry.get("questions"), list)
    ]


def _with_names_of(draft: Draft, text: str) -> Draft:
    """Return a draft with those of its names that stand in its passage."""
    folded = text.casefold()
    names = tuple(name for name in draft.names if name.casefold() in folded)
    return Draft(draft.text, draft.assertions, names)


def _in_several_places(groups: Mapping[str, list[Draft]]) -> dict[str, list[Draft]]:
    return {name: of for name, of in groups.items() if len(_places(of)) > 1}


def _places(drafts: Iterable[Draft]) -> set[int]:
    return {place for draft in drafts for place in draft.places}


def _in_turn(lists: Sequence[Sequence[Item]]) -> Iterator[Item]:
    """Yield the first of each list, then the second of each, and so on."""
    for place in range(max(map(len, lists), default=0)):
        yield from (items[place] for items in lists if place < len(items))
