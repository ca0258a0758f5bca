"""Languages that rules cannot read: most of their chunks gave no name, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphrag_pipeline.core.text import counted

SILENT_LANGUAGES = """
WITH silent AS MATERIALIZED (
    SELECT c.* FROM extractions e JOIN chunks c ON c.id = e.chunk_id
    WHERE e.extractor = 'nlp' AND e.status = 'ok' AND e.n_entities = 0 AND length(c.text) >= 40),
code AS (
    SELECT s.id FROM silent s JOIN blocks b
    ON b.document_id = s.document_id AND b.start_char < s.end_char AND b.end_char > s.start_char
    WHERE b.kind = 'code' GROUP BY s.id, s.start_char, s.end_char
    HAVING 2 * sum(least(b.end_char, s.end_char) - greatest(b.start_char, s.start_char))
           > s.end_char - s.start_char)
SELECT d.language, count(*) AS chunks,
       count(*) FILTER (c.id IN (SELECT id FROM silent)) AS silent
FROM extractions e JOIN chunks c ON c.id = e.chunk_id JOIN documents d ON d.id = c.document_id
WHERE e.extractor = 'nlp' AND e.status = 'ok' AND d.language <> '' AND length(c.text) >= 40
AND c.id NOT IN (SELECT id FROM code)
GROUP BY d.language HAVING 2 * silent > chunks ORDER BY silent DESC, d.language
"""
"""Languages of which rules found nothing in most chunks: ``language``, ``chunks``, ``silent``.

Chunks that are mostly code are not counted: no model finds names there, either.
"""

_NAMES = {
    "am": "Amharic", "ar": "Arabic", "bn": "Bengali", "bo": "Tibetan", "cs": "Czech",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew",
    "hi": "Hindi", "hu": "Hungarian", "hy": "Armenian", "it": "Italian", "ja": "Japanese",
    "ka": "Georgian", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "lo": "Lao",
    "ml": "Malayalam", "my": "Burmese", "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "si": "Sinhala",
    "sv": "Swedish", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tr": "Turkish",
    "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


def silent_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each language that rules cannot read, with what to do."""
    for row in rows:
        name = _NAMES.get(row["language"], row["language"])
        yield (
            f"rules found no name in {row['silent']:,} of {counted(row['chunks'], 'chunk')} in "
            f'{name}: a model on your own machine can (profile = "local", see Languages in '
            "the documentation)"
        )
