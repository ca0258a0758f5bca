"""Estimate of writing the community reports: the calls of a model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from graphrag_pipeline.core.prompting import load_prompt
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import message_tokens
from graphrag_pipeline.llm.configured import prompts_folder
from graphrag_pipeline.llm.estimates import (
    Average,
    Embedded,
    Estimate,
    Growth,
    LargestCall,
    ModelCalls,
)
from graphrag_pipeline.reports.model_writer import ROLE, report_messages

STAGE = "community_reports"
TOKENS_PER_WORD = 1.5
_CONTEXT = 1200
_ANSWER = 950


def estimate(settings: Settings, growth: Growth) -> Estimate:
    """Return the reports to write, those of structures among them, and their texts to embed."""
    texts = [Embedded(growth.reports, growth.reports * _text(growth), STAGE)]
    if settings.reports.writer != "llm":
        return Estimate(texts=texts)
    mean, n = _of_a_report(settings, growth), growth.reports + growth.further_reports
    # A community has some four below it, whose reports its own is made from.
    levels = max(1, math.ceil(math.log(max(n, 1), 4)))
    in_all = ModelCalls(
        STAGE, n, n * mean.prompt, n * mean.completion, is_total=True, role=ROLE, rounds=levels
    )
    return Estimate([in_all], texts=texts)


def largest_calls(settings: Settings) -> Iterator[LargestCall]:
    """Yield the call for the largest report."""
    if settings.reports.writer == "llm":
        words = round(settings.reports.max_words * TOKENS_PER_WORD)
        instructions = report_instructions(settings)
        yield LargestCall(STAGE, instructions, "reports.max_context_tokens", words, ROLE)


def report_instructions(settings: Settings) -> int:
    """Return the tokens of a report's prompt without its context."""
    prompt = load_prompt("community_report", prompts_folder(settings))
    return message_tokens(report_messages(prompt, settings.reports, ""))


def _prompt(settings: Settings, context: float | None) -> float:
    most = min(_CONTEXT, settings.reports.max_context_tokens)
    return report_instructions(settings) + (context or most)


def _text(growth: Growth) -> float:
    """Return the tokens of a report."""
    written = growth.effect.report_texts if growth.effect else None
    return written.tokens / written.number if written and written.number else _ANSWER


def _of_a_report(settings: Settings, growth: Growth) -> Average:
    """Return the tokens of a report's calls: those of the index's reports, by size of context."""
    prompt = _prompt(settings, growth.report_context)
    before = growth.history.get(STAGE)
    if before is None:
        return Average(prompt, _ANSWER)
    return Average(
        before.prompt * prompt / _prompt(settings, growth.mean_context), before.completion
    )
