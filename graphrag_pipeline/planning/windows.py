"""Check that the prompts of each stage fit into the model's window, before anything is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction import estimate as extraction
from graphrag_pipeline.llm.configured import model_options
from graphrag_pipeline.llm.estimates import Growth, LargestCall
from graphrag_pipeline.llm.windows import evidence_room, excess, window_of
from graphrag_pipeline.reports import estimate as reports
from graphrag_pipeline.structures.registry import wanted_structures

# With less than this much text in a prompt the instructions are most of what is paid for.
_LEAST_ROOM = 200
# And an answer of less is cut off.
_LEAST_ANSWER = 400


def check_windows(settings: Settings) -> None:
    """Raise ConfigError, a line for each setting, where a stage's calls cannot fit."""
    problems: dict[str, str] = {}
    rooms: dict[str, int] = {}
    for call in _calls(settings):
        options = model_options(settings, call.role)
        window, factor = window_of(options), excess(options.model)
        if window is None:
            continue
        size = _value(settings, call.limit)
        room = int((window - call.answer) / factor) - call.instructions
        if size > room and room < rooms.get(call.limit, size):
            rooms[call.limit] = room
            cures = [f"set {call.limit} to {room} or less"] if room >= _LEAST_ROOM else []
            answer = window - math.ceil(factor * (call.instructions + size))
            if options.max_output_tokens == call.answer and answer >= _LEAST_ANSWER:
                cures.append(f"set {options.section}.max_output_tokens to {answer} or less")
            mend = ", or ".join(cures) or "take a model with a larger window"
            problems[call.limit] = (
                f"{call.limit} = {size}: with the prompt and answer of {call.stage}, it does not "
                f"fit into the {window} tokens of {options.model}: {mend}, or set "
                f"{options.section}.context_window if the window is larger"
            )
    options = model_options(settings, reports.ROLE)
    most = options.max_output_tokens
    report = round(settings.reports.max_words * reports.TOKENS_PER_WORD)
    if most and settings.reports.writer == "llm" and report > most:
        problems["reports.max_words"] = (
            f"reports.max_words = {settings.reports.max_words}: a report takes about {report} "
            f"tokens, and {options.section}.max_output_tokens = {most} cuts it: set max_words to "
            f"{int(most / reports.TOKENS_PER_WORD)} or less, or max_output_tokens higher"
        )
    if problems:
        raise ConfigError("\n".join(problems.values()))


def said_of_window(settings: Settings) -> Iterator[str]:
    """Yield what a reader of a plan must know of the model's window."""
    options = model_options(settings, "answers")
    room, budget = evidence_room(settings, options), settings.query.max_context_tokens
    if window_of(options) is None:
        yield (
            f"the window of {options.model} is not known: set {options.section}.context_window to "
            "what the server was started with, for some servers cut what does not fit and say "
            "nothing"
        )
    if room is not None and room < budget:
        yield (
            f"answers will be written from at most {room:,} tokens, not {budget:,} "
            f"(query.max_context_tokens), for the window of {options.model}"
        )


def said_of_extractor(settings: Settings) -> Iterator[str]:
    """Yield why rules extract where a profile would have had the model do it."""
    if settings.extraction.extractor == "nlp" and (reason := settings.why_by_rule):
        yield (
            f"entities and relationships are found by rule: {reason}, and rules find more than "
            'models so small; set extraction.extractor = "llm" to have the model do it all the same'
        )


def _calls(settings: Settings) -> Iterator[LargestCall]:
    yield from extraction.largest_calls(settings)
    yield from reports.largest_calls(settings)
    for structure in wanted_structures(settings):
        for calls in structure.estimate(settings, Growth()).calls:
            if calls.limit:
                instructions = reports.report_instructions(settings)
                answer = round(calls.completion_tokens)
                yield LargestCall(calls.stage, instructions, calls.limit, answer, calls.role)


def _value(settings: Settings, name: str) -> int:
    section, _, own = name.partition(".")
    value = getattr(getattr(settings, section), own)
    assert isinstance(value, int)
    return value
