"""`query` and `compare`: the published index asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import answer_views, console
from graphrag_pipeline.cli.command import (
    AsLabels,
    OfRelease,
    Where,
    documents_where,
    label_list,
    prints,
    settings_here,
)
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_pipeline.query import Answer, AnswerStream, Compared


ResponseType = Annotated[
    str | None, typer.Option(help="Length and form, such as 'one paragraph' (with a model).")
]
History = Annotated[
    Path | None,
    typer.Option(help="The conversation so far: JSON list of {role, content} (with a model)."),
]
Sentences = Annotated[
    int | None,
    typer.Option(help="Most sentences in the answer, by default 5 (without a model)."),
]
Context = Annotated[
    int | None,
    typer.Option(help="Sentences added before and after each (without a model)."),
]
_OF_METHODS = "Options of some methods"
Level = Annotated[
    str | None,
    typer.Option(
        help="The level whose reports are read: C0 (or 0) is the root. A community that is not "
        "split belongs to all deeper levels too.",
        rich_help_panel=_OF_METHODS,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(help="How many rows the search starts from.", rich_help_panel=_OF_METHODS),
]
Dynamic = Annotated[
    bool,
    typer.Option(
        "--dynamic", help="global: let the model choose the reports.", rich_help_panel=_OF_METHODS
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="global, text_summary: shuffle by this seed.", rich_help_panel=_OF_METHODS),
]
Depth = Annotated[
    int | None, typer.Option(help="drift: rounds of questions.", rich_help_panel=_OF_METHODS)
]
Width = Annotated[
    int | None, typer.Option(help="drift: questions in a round.", rich_help_panel=_OF_METHODS)
]


def _show_query(answer: Answer | AnswerStream) -> None:
    from graphrag_pipeline.query import AnswerStream

    if isinstance(answer, AnswerStream):
        answer_views.show_stream(answer)
    else:
        answer_views.show_answer(answer)


def _query_values(answer: Answer | AnswerStream) -> dict[str, Any]:
    from graphrag_pipeline.query import AnswerStream

    if isinstance(answer, AnswerStream):
        raise InputError("--stream prints text as it comes: use it without --json")
    return answer.to_dict()


@prints(_show_query, _query_values)
def query(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="A method: local, global, bm25 ...; with a parameter: kg_triplets:hops=1. "
            "docs/reference/methods.md lists them all. By default local where a model writes, else "
            "auto: global for themes, ppr where the question names what is in the graph, or bm25.",
        ),
    ] = None,
    release: OfRelease = None,
    where: Where = None,
    as_labels: AsLabels = None,
    response_type: ResponseType = None,
    history: History = None,
    short: Annotated[
        bool,
        typer.Option(
            "--short", help='Answer in a few words, or with "Not in the documents" (model).'
        ),
    ] = False,
    sentences: Sentences = None,
    context: Context = None,
    follow_ups: Annotated[int, typer.Option(help="How many follow-up questions to suggest.")] = 0,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print the answer while it is written.")
    ] = False,
    level: Level = None,
    top_k: TopK = None,
    dynamic: Dynamic = False,
    seed: Seed = None,
    depth: Depth = None,
    width: Width = None,
) -> Answer | AnswerStream:
    """Answer a question from the published index, with citations."""
    from graphrag_pipeline.core.levels import parse_level
    from graphrag_pipeline.query import read_history, read_method
    from graphrag_pipeline.query.ask import default_method

    options_given = {"level": None if level is None else parse_level(level), "top_k": top_k}
    options_given |= {"seed": seed, "depth": depth, "width": width, "dynamic": dynamic or None}
    settings = settings_here()
    method, in_name = read_method(method or default_method(settings))
    options = _taken(method, options_given) | in_name
    options |= {"history": read_history(history) if history else ()}
    options |= {"response_type": response_type, "answer_style": "short" if short else None}
    both = {"sentences": sentences, "context": context}
    numbers = {name: number for name, number in both.items() if number is not None}
    writes = settings.query.answers == "llm"
    _note_unused(writes=writes, of_model=bool(history or response_type), of_rules=bool(numbers))
    options |= {"settings": settings, "home": settings.home_path, "release": release, **numbers}
    options |= {"where": documents_where(where), "labels": label_list(as_labels)}
    options |= {"follow_ups": follow_ups}
    from graphrag_pipeline.query import answer, stream_answer

    if stream:
        return stream_answer(question, method, **options)
    return answer(question, method, **options)


def _note_unused(*, writes: bool, of_model: bool, of_rules: bool) -> None:
    """Say which options have no effect, as a model ``writes`` the answer or does not."""
    if of_model and not writes:
        console.note("no model writes the answer: --history and --response-type have no effect")
    if of_rules and writes:
        console.note("a model writes the answer: --sentences and --context have no effect")


@prints(answer_views.show_compared)
def compare(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            "-m",
            help="Methods, separated by commas; parameters as in kg_triplets:hops=1.",
        ),
    ] = "basic,bm25,local,global",
    retrieval_only: Annotated[
        bool,
        typer.Option("--retrieval-only", help="Show what each method retrieves, without answers."),
    ] = False,
    release: OfRelease = None,
    where: Where = None,
    as_labels: AsLabels = None,
) -> list[Compared]:
    """Answer a question by several methods, side by side: citations, tokens, cost and time."""
    from graphrag_pipeline.query import compare as compare_methods

    settings = settings_here()
    return compare_methods(
        question,
        methods.split(","),
        where=documents_where(where),
        labels=label_list(as_labels),
        retrieval_only=retrieval_only,
        home=settings.home_path,
        release=release,
        settings=settings,
    )


def _taken(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given; InputError where the method does not take one."""
    from graphrag_pipeline.query import methods_taking

    parameters = {name: value for name, value in options.items() if value is not None}
    for name in parameters:
        takers = methods_taking(name)
        if method not in takers:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is for {', '.join(takers)}; {method} does not take it")
    return parameters
