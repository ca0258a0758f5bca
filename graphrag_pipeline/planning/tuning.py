"""Prompts tuned to a corpus: a model reads a sample and proposes what the prompts should say.

What it proposes is written as prompt files and a few settings, for the user to read, edit and
version; nothing is used until the settings name the folder.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.prompting import EXAMPLES, Message, bake, load_prompt
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.model.tuples import parse_tuples
from graphrag_pipeline.ingest.chunking import split
from graphrag_pipeline.ingest.documents import read_within, readers
from graphrag_pipeline.llm.configured import prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.store.ignoring import selection_of
from graphrag_pipeline.store.scanning import scan_folder

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

STAGE = "tune"
DOMAIN = "tuned"
_SEED = 86
_SAMPLE_CHUNKS = 15
_FILES_READ = 200
_EXAMPLES = 3
_MIN_RECORDS = 3


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The proposals of the model, and the files they were written to."""

    domain: str
    language: str
    persona: str
    report_rating: str
    entity_types: tuple[str, ...]
    n_examples: int
    files: tuple[Path, ...]


def tune(settings: Settings, folder: Path, target: Path) -> Tuning:
    """Read a sample of a folder's documents and write prompt files into ``target``.

    Raises InputError when the folder holds nothing to read, or ``target`` holds prompts already.
    """
    if any(target.glob("*.txt")) or any(target.glob(f"{EXAMPLES}/*.txt")):
        raise InputError(f"{target} holds prompts already: name another folder, or move them away")
    sample = sample_chunks(settings, folder)
    proposed, examples = with_model(
        settings, lambda client: _propose(client, sample, settings), "extraction", at_once=True
    )
    return replace(proposed, files=tuple(_write(proposed, examples, target, settings)))


def sample_chunks(settings: Settings, folder: Path) -> list[str]:
    """Return a fixed random sample of the chunks of a folder's documents."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name one that holds your documents")
    pick = random.Random(_SEED)
    paths = sorted(scan_folder(folder, settings.home_path, selection_of(settings.input)).files)
    within = None if settings.input.follow_links else folder
    with readers(settings) as files:
        chunks = [
            document.text[span.start : span.end]
            for path in pick.sample(paths, min(len(paths), _FILES_READ))
            for document in read_within(folder / path, within, files)[0].documents
            for span in split(document.text, settings.chunks)
        ]
    if not chunks:
        raise InputError(f"{folder} holds no document that can be read")
    return pick.sample(chunks, min(len(chunks), _SAMPLE_CHUNKS))


async def _propose(
    client: ModelClient, sample: Sequence[str], settings: Settings
) -> tuple[Tuning, list[tuple[str, str]]]:
    """Return what the model proposes, no file being written yet, and chunks with their records."""
    own = prompts_folder(settings)

    async def ask(name: str, **values: str) -> str:
        answer = await client.complete(load_prompt(name, own).render(**values), stage=STAGE)
        return answer.text.strip()

    text = "\n\n".join(sample)
    domain = _line(await ask("tune_domain", text=text))
    language = _line(await ask("tune_language", text=text))
    persona = _line(await ask("tune_persona", domain=domain, text=text))
    rating = _line(await ask("tune_report_rating", domain=domain, text=text, persona=persona))
    values = {"domain": domain, "text": text, "language": language, "persona": persona}
    types = await _entity_types(client, load_prompt("tune_entity_types", own).render(**values), own)
    examples = []
    for chunk in sample:
        if len(examples) == _EXAMPLES:
            break
        records = await ask(
            "tune_examples",
            document=chunk,
            entity_types=", ".join(types),
            language=language,
            persona=persona,
        )
        tuples = parse_tuples(records, chunk_text=chunk)
        if len(tuples.entities) + len(tuples.relationships) >= _MIN_RECORDS:
            examples.append((chunk, _records(records)))
    proposed = Tuning(
        domain=domain,
        language=language,
        persona=persona,
        report_rating=rating,
        entity_types=types,
        n_examples=len(examples),
        files=(),
    )
    return proposed, examples


async def _entity_types(
    client: ModelClient, talk: Sequence[Message], own: Path | None
) -> tuple[str, ...]:
    """Ask for entity types, once more where they cannot be read."""
    again = load_prompt("report_retry", own)
    return await client.read(
        talk, _types, stage=STAGE, again=lambda error: again.render(error=error)
    )


def _write(
    proposed: Tuning, pairs: Sequence[tuple[str, str]], target: Path, settings: Settings
) -> list[Path]:
    own = prompts_folder(settings)
    report = bake(
        "community_report",
        own,
        persona=proposed.persona,
        rating_description=proposed.report_rating,
    )
    types = ", ".join(proposed.entity_types)
    examples = "\n\n".join(
        f"Example {number}\nEntity types: {types}\nText:\n{text}\nRecords:\n{records}"
        for number, (text, records) in enumerate(pairs, 1)
    )
    listed = ", ".join(map(_toml, proposed.entity_types))
    settings_text = (
        f"# Tuned to: {proposed.domain} ({proposed.language}). Copy into graphrag.toml.\n"
        f"[llm]\nprompts = {_toml(target.as_posix())}\n\n"
        f'[extraction]\nentity_types = [{listed}]\ndomain = "{DOMAIN}"\n'
    )
    contents = {
        target / "community_report.txt": report,
        target / EXAMPLES / f"{DOMAIN}.txt": f"{examples}\n",
        target / "settings.toml": settings_text,
    }
    for path, content in contents.items():
        write_beside(path, content.encode())
    return list(contents)


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _types(answer: str) -> tuple[str, ...]:
    reply = parse_json_object(answer)
    listed = reply.get("entity_types")
    types = [_line(str(kind)) for kind in listed] if isinstance(listed, list) else []
    if not types:
        raise ModelOutputError("the model proposed no entity types: try again, or another model")
    return tuple(dict.fromkeys(filter(None, types)))


def _records(answer: str) -> str:
    """Return records as an example shows them, whatever the model wrote around them."""
    tuples = parse_tuples(answer, chunk_text=answer)
    lines = [f'("entity"<|>{e.title}<|>{e.type}<|>{e.description})' for e in tuples.entities]
    lines += [
        f'("relationship"<|>{r.source}<|>{r.target}<|>{r.description})'
        for r in tuples.relationships
    ]
    return "\n##\n".join(lines) + "\n<|COMPLETE|>"
