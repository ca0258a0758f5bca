"""longest.py: a command that lists the longest documents, and its settings."""

from typing import Annotated

import typer
from pydantic import BaseModel, PositiveInt

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here

LONGEST = "SELECT title, n_chars FROM documents ORDER BY n_chars DESC, title LIMIT {number:d}"


class LongestSettings(BaseModel):
    number: PositiveInt = 10


def show(rows):
    for row in rows:
        console.say_whole(f"{row['characters']:>9,}  {row['title']}")


@prints(show)
def longest(
    number: Annotated[int | None, typer.Option("--number", "-n", min=1, help="How many.")] = None,
) -> list:
    """List the longest documents of the published index."""
    from graphrag_pipeline.marts.sql import query_published

    settings = settings_here()
    number = number or settings.of_package("longest").number
    _, rows = query_published(settings.home_path, LONGEST.format(number=number))
    return [{"title": title, "characters": characters} for title, characters in rows]
