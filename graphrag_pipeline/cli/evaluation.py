"""`graphrag-pipeline eval`: experiments on the user's own corpus, and what comes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import eval_index, eval_run
from graphrag_pipeline.cli.eval_run import AsJson
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_pipeline.evaluation.question_sets import QuestionSet
    from graphrag_pipeline.evaluation.verdicts import Comparison, Verdict
    from graphrag_pipeline.llm.pricing import StagePlan

app = typer.Typer(
    name="eval",
    help="Evaluate on your own corpus: questions, experiments, judges, and a report.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

for _command in (eval_run.run, eval_run.plan, eval_run.results, eval_run.compare, eval_index.index):
    app.command()(_command)

QuestionFile = Annotated[
    Path | None, typer.Argument(help="Questions: JSON, JSON Lines, CSV, text, or a data set's.")
]
Generate = Annotated[
    bool, typer.Option("--generate", help="Let the model make them (GraphRAG, Algorithm 1).")
]
Description = Annotated[
    str, typer.Option(help="What the documents are (default: said from the index).")
]
SetName = Annotated[
    str, typer.Option("--set", help="Name of the set (default: the file's, or generated).")
]
QuestionOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the set here as JSON Lines, too.")
]

_SHARES = (
    "win_rate", "win_rate_low", "win_rate_high", "win_rate_first", "win_rate_second", "ties",
    "first_chosen", "first_chosen_low", "first_chosen_high", "consistent",
)  # fmt: skip
_COLUMNS = ("criterion", "win %", "95 %", "1st %", "agree %", "p (Holm)", "winner")


@app.command()
def questions(
    file: QuestionFile = None,
    generate: Generate = False,
    personas: Annotated[int, typer.Option(help="People who would ask (with --generate).")] = 5,
    tasks: Annotated[int, typer.Option(help="Tasks of each person.")] = 5,
    questions_per_task: Annotated[int, typer.Option(help="Questions for each task.")] = 5,
    description: Description = "",
    plan: Annotated[bool, typer.Option("--plan", help="Only say what generating takes.")] = False,
    question_set: SetName = "",
    format: Annotated[str, typer.Option(help="Format of the file (default: by its fields).")] = "",
    output: QuestionOutput = None,
    as_json: AsJson = False,
) -> None:
    """Keep a file's questions as a question set, let the model make one, or show those there are.

    Formats: own, musique, hotpotqa, 2wikimultihopqa, multihop-rag, qmsum, squality.
    """
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.evaluation import question_sets
    from graphrag_pipeline.evaluation.generating import Numbers

    if file is not None and (generate or plan):
        raise InputError("give a file of questions, or --generate or --plan, not both")
    settings, numbers = load_settings(), Numbers(personas, tasks, questions_per_task)
    if plan:
        _show_generation(question_sets.plan(settings, numbers, description), as_json)
    elif generate:
        with console.progress("asking for questions"):
            made = question_sets.make(settings, numbers, question_set, description)
        _show_questions(made, output, as_json)
    elif file is not None:
        taken = question_sets.take(settings, file, question_set, format)
        _show_questions(taken, output, as_json)
    elif question_set:
        _show_questions(question_sets.show(settings, question_set), output, as_json)
    else:
        _show_sets(question_sets.all_sets(settings), as_json)


@app.command()
def winrate(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines of judgments, in both orders.")],
    as_json: AsJson = False,
) -> None:
    """Win rates in recorded judgments: what is certain of them, and what order did to them.

    A file holds verdicts (question, criterion, first, second, winner) or, named `A_vs_B.jsonl`,
    judgments as LightRAG's and HiRAG's evaluations record them: the second half of its lines judges
    the first half's questions with the answers in the other order. Rates are in percent.
    """
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.evaluation.judgment_files import read_judgment_files
    from graphrag_pipeline.evaluation.verdicts import compare_verdicts

    verdicts = read_judgment_files(files)
    found = compare_verdicts(verdicts)
    left_out = _left_out(verdicts, found)
    if not found:
        raise InputError("no question is judged in both orders: which answer was shown first may "
                         "have decided everything; judge them in the other order too")  # fmt: skip
    if left_out:
        console.note(f"{left_out:,} judged in one order only left out")
    if as_json:
        console.show_json(
            {"comparisons": [_values(one) for one in found], "matrix": _matrix(found)}
        )
    else:
        show_comparisons(found)


@app.command()
def report(
    experiment: Annotated[str | None, typer.Argument(help="Default: the latest.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "evaluation.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write what an experiment found as one HTML page, to read or send.

    It has quality against tokens and milliseconds, all metrics with their certainty, win rates,
    and the questions on which conditions differ most, with their answers side by side. It needs no
    network and no other file.
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.pages.evaluation import write_evaluation

    done = write_evaluation(load_settings().home_path, output, experiment)
    console.show_json(asdict(done)) if as_json else console.show_evaluation(done)


def _show_sets(sets: Sequence[Mapping[str, object]], as_json: bool) -> None:
    from graphrag_pipeline.cli import console

    if as_json:
        console.show_json(sets)
    elif sets:
        console.show_rows(tuple(sets[0]), [tuple(each.values()) for each in sets])
    else:
        console.say("There are no questions yet: name a file of them, or use --generate.")


def _show_questions(found: QuestionSet, output: Path | None, as_json: bool) -> None:
    """Print what a set holds, having written it where it is wanted."""
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.evaluation.datasets import write_questions

    if output is not None:
        write_questions(output, found.questions)
    for failure in found.failures:
        console.note(f"warning: {failure}")
    if as_json:
        console.show_json(asdict(found))
        return
    console.say(f"Question set {found.name}: {len(found.questions):,} questions")
    console.show_rows(("type", "questions", "with answers", "with passages"), found.by_type())
    if found.duplicates:
        console.note(f"{found.duplicates:,} left out that had been asked before")
    if output is not None:
        console.say(f"Wrote {output}")


def _show_generation(expected: StagePlan, as_json: bool) -> None:
    from dataclasses import asdict

    from graphrag_pipeline.cli import console

    if as_json:
        console.show_json(asdict(expected))
        return
    tokens = f"{expected.prompt_tokens:,} tokens in, {expected.completion_tokens:,} out"
    cost = "unknown cost" if expected.cost is None else f"${expected.cost:.4f}"
    console.say(f"{expected.calls:,} calls of {expected.model}, about {tokens}, {cost}")


def show_comparisons(found: Sequence[Comparison]) -> None:
    """Print a table for each pair of conditions, each criterion's verdict, and the matrix."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.evaluation.verdict_text import explain

    pairs = dict.fromkeys((one.condition_a, one.condition_b) for one in found)
    for a, b in pairs:
        of_pair = [one for one in found if (one.condition_a, one.condition_b) == (a, b)]
        console.say(f"{a} against {b}: {of_pair[0].questions} questions, each in both orders")
        console.show_rows(_COLUMNS, [_row(one) for one in of_pair])
        console.say()
        for one in of_pair:
            console.say(f"{one.criterion}: {explain(one)}")
            console.say()
    _show_matrix(found)


def _row(one: Comparison) -> tuple[str, ...]:
    first = "-" if one.first_chosen is None else f"{100 * one.first_chosen:.1f}"
    return (
        one.criterion,
        f"{100 * one.win_rate:.1f}",
        f"{100 * one.win_rate_low:.1f}-{100 * one.win_rate_high:.1f}",
        f"{first} biased" if one.is_biased else first,
        f"{100 * one.consistent:.0f}",
        f"{one.p_corrected:.2g}",
        one.winner or "none",
    )


def _show_matrix(found: Sequence[Comparison]) -> None:
    """Print win rates of rows over columns, where every condition was compared with every other."""
    from graphrag_pipeline.cli import console

    for criterion, rates in _matrix(found).items():
        if len(rates) > 2 and all(
            rate is not None for row in rates.values() for rate in row.values()
        ):
            console.say(f"{criterion}: win rate of row over column, %")
            rows = [
                (name, *(f"{rate:.0f}" for rate in row.values())) for name, row in rates.items()
            ]
            console.show_rows(("", *rates), rows)
            console.say()


def _matrix(found: Sequence[Comparison]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return win rates in percent by criterion, row and column."""
    from graphrag_pipeline.evaluation.verdicts import win_rate_matrix

    names = list(dict.fromkeys(n for one in found for n in (one.condition_a, one.condition_b)))
    rates = {
        criterion: win_rate_matrix(found, criterion, names)
        for criterion in dict.fromkeys(one.criterion for one in found)
    }
    return {
        criterion: {
            name: dict(zip(names, map(_percent, row), strict=True))
            for name, row in zip(names, rows, strict=True)
        }
        for criterion, rows in rates.items()
    }


def _values(one: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values, rates and shares in percent."""
    from dataclasses import asdict

    from graphrag_pipeline.evaluation.verdict_text import explain

    given = asdict(one)
    shares = {name: _percent(given[name]) for name in _SHARES}
    said = {"biased": one.is_biased, "winner": one.winner, "verdict": explain(one)}
    return {**given, **shares, **said}


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)


def _left_out(verdicts: Sequence[Verdict], found: Sequence[Comparison]) -> int:
    judged = {(one.criterion, frozenset((one.first, one.second)), one.question) for one in verdicts}
    return len(judged) - sum(one.questions for one in found)
