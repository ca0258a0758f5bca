"""glossary.py: an export of entities and what they are, as a list in Markdown."""

from graphrag_pipeline.exchange.exporting import Exporter

LINES = """
SELECT '- **' || replace(title, '*', '\\*') || '**: '
       || regexp_replace(description, '[\n\r]+', ' ', 'g') AS line
FROM entities ORDER BY title
"""


def write_glossary(writer, name):
    writer.text(name, ["# Glossary\n\n", ("entities", LINES, "\n"), "\n"])


GLOSSARY = Exporter(
    "glossary.md",
    "any editor opens {path}",
    file=write_glossary,
    lost=("relationships, communities and texts",),
)
