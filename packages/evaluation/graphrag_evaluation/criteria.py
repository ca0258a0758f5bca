"""Criteria by which answers are compared, as the judge is given them."""

from __future__ import annotations

from collections.abc import Mapping

CRITERIA: Mapping[str, str] = {
    "comprehensiveness": "Comprehensiveness: how much detail the answer gives to cover all aspects "
    "of the question. A comprehensive answer is thorough and complete, leaves out nothing "
    "important, and neither repeats itself nor strays from the question.",
    "diversity": "Diversity: how varied and rich the answer is in perspectives and insights on the "
    "question. A diverse answer has many facets, different points of view, and different sources "
    "and evidence behind them; one that gives a single perspective or source is not diverse.",
    "empowerment": "Empowerment: how well the answer helps the reader to understand the topic and "
    "to judge it for themselves, without being misled. It explains, gives its reasons, and names "
    "the sources of what it claims.",
    "directness": "Directness: how specifically and clearly the answer addresses the question. A "
    "direct answer says what was asked, clearly and concisely, and nothing else.",
    "overall": "Overall: which answer serves the reader who asked the question better, taking "
    "everything together: how complete, varied, understandable, well founded and to the point it "
    "is.",
}
"""What each criterion means, as the judge is told; GraphRAG's but for "overall"."""

REFERENCE_CRITERIA: Mapping[str, str] = {
    "correctness": "Correctness: how far what the answer says agrees with the reference. What "
    "contradicts the reference, or claims what it rules out, counts against the answer; what the "
    "answer leaves out does not.",
    "completeness": "Completeness: how much of what the reference says the answer says too. What "
    "it leaves out counts against the answer; what it says beyond the reference does not.",
}
"""What an answer is scored by against a reference; the names are benchmark-qed's."""
