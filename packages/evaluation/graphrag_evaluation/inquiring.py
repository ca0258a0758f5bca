"""Questions to a model about answers and passages: planned, asked once, and kept as they are told.

Each step of an evaluation makes its inquiries, each with an id that is a hash of all that its
answer depends on. Those whose id is in the step's table are not asked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import polars as pl

from graphrag_evaluation.keeping import keeping
from graphrag_evaluation.step_models import ROLE, StepModel, model_label
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.progress import Listener, report
from graphrag_pipeline.core.prompting import Prompt, load_prompt, prompt_version
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import model_prices, prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.llm.running import work_through
from graphrag_pipeline.llm.schemas import text
from graphrag_pipeline.store.frames import streamed

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

_MEANS = """
CREATE OR REPLACE TEMP TABLE marked AS
SELECT a.answer_id, a.metric, avg(g.value) AS value FROM asked a JOIN gradings g USING (grading_id)
GROUP BY ALL
"""

STAGE = "evaluation"
"""What the ledger calls the calls."""
REASONING: Final = text(1000)
"""The schema of why a model decides as it does."""

Item = TypeVar("Item")
Parsed = TypeVar("Parsed")


@dataclass(frozen=True, kw_only=True)
class EvaluationInquiry:
    """A question to a model; ``columns`` are kept beside what it says.

    Inquiries that differ in ``replicate`` alone are calls of their own. ``finish`` turns what the
    form reads of the answer into columns, where that takes what this inquiry alone knows. A failure
    is told under ``name``, by default the form's.
    """

    id: str
    values: Mapping[str, str]
    columns: Mapping[str, Any]
    replicate: int = 0
    finish: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Wording:
    """A request to a model: the prompt, and the schema of its answer."""

    name: str
    prompt: str
    json_schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class QuestionForm(Wording):
    """A kind of inquiry: how it is put, read and kept.

    ``parse`` turns an answer into columns of ``table``; it raises ModelOutputError for one that
    says none. ``answer_tokens`` is what an answer takes, for the plan. ``model`` and ``made_at``
    name the columns for who answered, and when.
    """

    table: str
    key: str
    parse: Callable[[str], Mapping[str, Any]]
    answer_tokens: int
    columns: Mapping[str, Any] | None = None
    model: str = "model"
    made_at: str = "made_at"


@dataclass(frozen=True)
class Asked:
    """The number of inquiries answered, and why others were not; those are still missing."""

    made: int = 0
    failures: tuple[str, ...] = ()

    def __add__(self, other: Asked) -> Asked:
        """Return both together."""
        return Asked(self.made + other.made, (*self.failures, *other.failures))


def made_by(form: QuestionForm, step: StepModel, settings: Settings) -> str:
    """Return a hash of the model and the prompt; ``settings`` are the step's."""
    prompt = prompt_version(form.prompt, folder=prompts_folder(settings))
    return make_id(form.name, prompt, *map(repr, step.answered_by(settings)))


def whole_numbers(text: str, key: str) -> list[int]:
    """Return the list under a key of an answer in JSON. Raises ModelOutputError for another."""
    numbers = parse_json_object(text).get(key)
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise ModelOutputError(f'the answer must hold "{key}", a list of whole numbers')
    return numbers


def share_of(
    values: Mapping[str, Any], *, key: str, most: int, said: str, tells_others: bool = False
) -> Mapping[str, Any]:
    """Return the share of ``most`` statements whose numbers stand under a key, and a reason.

    The reason names them, or the others, after what is ``said`` of these. A number of no statement
    does not count.
    """
    named = {n for n in values[key] if 0 < n <= most}
    told = {*range(1, most + 1)} - named if tells_others else named
    numbers = ", ".join(map(str, sorted(told))) or "none"
    return {"value": len(named) / max(1, most), "reason": f"{said}: {numbers}"}


def unanswered(
    con: duckdb.DuckDBPyConnection, form: QuestionForm, inquiries: Sequence[EvaluationInquiry]
) -> list[EvaluationInquiry]:
    """Return the inquiries that are not in the form's table, each once."""
    distinct = {inquiry.id: inquiry for inquiry in inquiries}
    with streamed(con, "asked", pl.DataFrame({"id": list(distinct)}, {"id": pl.String})):
        rows = con.execute(
            f"SELECT id FROM asked WHERE id NOT IN (SELECT {form.key} FROM {form.table})"
        ).fetchall()
    missing = {id for (id,) in rows}
    return [inquiry for id, inquiry in distinct.items() if id in missing]


def plan_inquiries(
    settings: Settings, form: QuestionForm, inquiries: Sequence[EvaluationInquiry]
) -> StagePlan:
    """Return what asking these would take: a call each, retries left out."""
    prompt = load_prompt(form.prompt, prompts_folder(settings))
    around = _around(prompt)
    texts = {text for inquiry in inquiries for text in inquiry.values.values()}
    in_order = sorted(texts)
    lengths = dict(zip(in_order, count_tokens(in_order), strict=True))
    tokens = sum(
        around + sum(lengths[text] for text in inquiry.values.values()) for inquiry in inquiries
    )
    return _plan(settings, form, len(inquiries), tokens)


def plan_missing(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    form: QuestionForm,
    inquiries: Sequence[EvaluationInquiry],
) -> StagePlan:
    """Return what asking those would take that are not in the form's table."""
    return plan_inquiries(settings, form, unanswered(con, form, inquiries))


def plan_unseen(settings: Settings, form: QuestionForm, inquiries: int, tokens: int) -> StagePlan:
    """Return what so many inquiries would take, of ``tokens`` each besides the prompt."""
    prompt = load_prompt(form.prompt, prompts_folder(settings))
    return _plan(settings, form, inquiries, inquiries * (_around(prompt) + tokens))


def plan_calls(
    settings: Settings, stage: str, prompt: str, *, calls: int, tokens: int, answer_tokens: int
) -> StagePlan:
    """Return what calls with a prompt take, of ``tokens`` in all besides the prompt's own."""
    around = _around(load_prompt(prompt, prompts_folder(settings)))
    return _stage(settings, stage, calls, calls * around + tokens, answer_tokens)


def ask_inquiries(
    settings: Settings,
    store: EvaluationStore,
    form: QuestionForm,
    inquiries: Sequence[EvaluationInquiry],
    progress: Listener = report,
) -> Asked:
    """Ask those that are not in the form's table, and keep each answer there.

    An answer that cannot be read is asked for once more, then left out, and told. Raises the
    model's error when no further call can succeed; what was answered until then is kept.
    """
    with store.read() as con:
        inquiries = unanswered(con, form, inquiries)
    if not inquiries:
        return Asked()

    async def ask(reader: Reader, inquiry: EvaluationInquiry) -> None:
        def parse(text: str) -> Mapping[str, Any]:
            return inquiry.finish(form.parse(text))

        values = await reader.read(inquiry.values, parse, inquiry.replicate)
        keep({form.key: inquiry.id, **inquiry.columns, **values,
              form.model: settings.llm.model, form.made_at: datetime.now(UTC)})  # fmt: skip

    with keeping(store, form.table, form.key, form.columns) as keep:
        return ask_each(
            settings, form, inquiries, ask, progress, lambda inquiry: inquiry.name or form.name
        )


class Reader:
    """Asks a model in one wording; an answer that cannot be read is asked for once more."""

    def __init__(self, client: ModelClient, settings: Settings, wording: Wording) -> None:
        folder = prompts_folder(settings)
        self._client = client
        self._prompt = load_prompt(wording.prompt, folder)
        self._again = load_prompt("report_retry", folder)
        self._json_schema = wording.json_schema

    async def read(
        self, values: Mapping[str, str], parse: Callable[[str], Parsed], replicate: int = 0
    ) -> Parsed:
        """Return what ``parse`` reads of the answer."""
        return await self._client.read(
            self._prompt.render(**values),
            parse,
            stage=STAGE,
            json_schema=self._json_schema,
            # The first replicate is the plain call; the others are not its cached answer.
            variant=f"replicate {replicate}" if replicate else None,
            again=lambda error: self._again.render(error=error),
        )


def ask_each(
    settings: Settings,
    wording: Wording,
    items: Sequence[Item],
    ask: Callable[[Reader, Item], Awaitable[None]],
    progress: Listener = report,
    name: Callable[[Item], str] | None = None,
) -> Asked:
    """Ask what each item takes, several at a time; a failure is told under the item's ``name``.

    Raises the model's error when no further call can succeed.
    """
    failures: list[str] = []
    n_made = 0

    async def ask_all(client: ModelClient) -> None:
        reader = Reader(client, settings, wording)

        async def ask_item(item: Item) -> None:
            nonlocal n_made
            try:
                await ask(reader, item)
                n_made += 1
            except ModelError as error:
                if error.stops_everything:
                    raise
                failures.append(f"{name(item) if name else wording.name}: {error}")
            progress(wording.name, n_made + len(failures), len(items))

        await work_through(items, ask_item, 2 * client.options.concurrency)

    with_model(settings, ask_all, ROLE)
    return Asked(n_made, tuple(failures))


def grade(
    step: StepModel,
    settings: Settings,
    store: EvaluationStore,
    form: QuestionForm,
    inquiries: Sequence[EvaluationInquiry],
    experiment: str,
    metric: str,
) -> Asked:
    """Ask as :func:`ask_inquiries`; the means over replicates are the model's scores of answers.

    ``{}`` in the name of the ``metric`` is the subject of an inquiry. ``settings`` are the step's.
    """
    asked = ask_inquiries(settings, store, form, inquiries)
    names = ("grading_id", "answer_id", "metric")
    told = [(each.id, each.columns["answer_id"], each.columns["subject"]) for each in inquiries]
    rows = [(id, answer_id, metric.format(subject)) for id, answer_id, subject in told]
    table = pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
    with store.transaction() as con:
        with streamed(con, "asked", table):
            con.execute(_MEANS)
        put_marks(con, experiment, model_label(step, settings))
    return asked


def put_marks(con: duckdb.DuckDBPyConnection, experiment: str, model: str) -> None:
    """Make the rows of the table ``marked`` (answer_id, metric, value) a model's scores.

    The experiment goes by them from now on; those of other models stay. The table is dropped.
    """
    con.execute(
        "INSERT OR REPLACE INTO scores SELECT m.answer_id, e.question_set, m.metric, m.value, ? "
        "FROM marked m JOIN experiments e ON e.experiment = ?",
        [model, experiment],
    )
    con.execute(
        "INSERT OR REPLACE INTO experiment_models SELECT DISTINCT ?, metric, ? FROM marked",
        [experiment, model],
    )
    con.execute("DROP TABLE marked")


def _around(prompt: Prompt) -> int:
    talk = prompt.render(**dict.fromkeys(prompt.placeholders, ""))
    return sum(count_tokens([message["content"] for message in talk]))


def _plan(settings: Settings, form: QuestionForm, calls: int, tokens: int) -> StagePlan:
    return _stage(settings, form.name, calls, tokens, calls * form.answer_tokens)


def _stage(settings: Settings, name: str, calls: int, tokens: int, output: int) -> StagePlan:
    model = settings.llm.model
    return StagePlan(
        stage=name,
        model=model,
        calls=calls,
        cached=0,
        prompt_tokens=tokens,
        completion_tokens=output,
        cost=model_prices(settings, ROLE).cost(model, tokens, output),
    )
