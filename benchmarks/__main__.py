"""`make bench`: speed, quality, what model calls cost, and what a change of the corpus costs."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    answers,
    changing_corpus,
    chnsw,
    endurance,
    extraction_quality,
    language_names,
    latency,
    lazy,
    llm_client,
    many_entities,
    methods,
    model_index,
    name_quality,
    natures,
    plan,
    reading,
    retrieval_quality,
    scale,
    serve,
    small,
    troubles,
    untitled,
)
from benchmarks.index_speed import index_speed, podcast_files

PARTS = (
    "speed",
    "reading",
    "small",
    "extraction",
    "names",
    "retrieval",
    "methods",
    "natures",
    "untitled",
    "latency",
    "serve",
    "endurance",
    "explorer",
    "lazy",
    "chnsw",
    "model",
    "changes",
    "troubles",
    "plan",
    "scale",
)
DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Print every measurement, or only the parts named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; or answers")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    methods.add_options(parser)
    natures.add_options(parser)
    answers.add_options(parser)
    scale.add_options(parser)
    options = parser.parse_args()
    if options.parts[:1] == ["answers"]:
        answers.main(list(map(Path, options.parts[1:])), options)
        return
    if not options.data.is_dir() and options.parts not in (["methods"], ["names"]):
        raise SystemExit(f"the data sets are not in {options.data}: name their folder with --data")
    parts = options.parts or PARTS
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores")
    if not _measured(parts, options):
        raise SystemExit(1)


def _measured(parts: Sequence[str], options: argparse.Namespace) -> bool:
    """Print the measurements of some parts; return whether what is recorded came out again."""
    if "speed" in parts:
        _speed(options.data)
    if "reading" in parts:
        print("\nReading and ingesting pages, a long text and a large table (embedded default)")
        reading.main(options.data)
    if "small" in parts:
        print("\nSmall things on the sample corpus (embedded default)")
        small.main()
    if "extraction" in parts:
        print("\nThe rule extractor against recorded model extractions")
        extraction_quality.main([str(options.data)])
    if "names" in parts:
        print("\nNames by rule in texts of each language: precision, recall (right/found/marked)")
        language_names.main()
        if not options.data.is_dir():
            return True
        print("\nThe 100 most connected people and places found by rule, against labels")
        name_quality.main(options.data)
    if "retrieval" in parts:
        print("\nRecall of gold passages, 100 MuSiQue questions over 1,890 passages (percent)")
        retrieval_quality.main([str(options.data)])
    is_as_recorded = True
    if "methods" in parts:
        print("\nEvery method on the same questions and passages, indexed by the pipeline")
        is_as_recorded = methods.main(options)
    if "natures" in parts:
        print("\nMethods without a model on questions of several natures, beside full text")
        is_as_recorded = natures.main(options) and is_as_recorded
    _measure_runs(parts, options)
    return is_as_recorded


def _measure_runs(parts: Sequence[str], options: argparse.Namespace) -> None:
    if "untitled" in parts:
        print("\nWhat titles and covering are worth where titles say nothing")
        untitled.main(options.data)
    if "latency" in parts:
        print("\nMilliseconds of retrieve() on podcast transcripts, by method")
        latency.main([str(options.data)])
    if "serve" in parts:
        print("\nThe server under load on loopback, over podcast transcripts")
        serve.main([str(options.data)])
    if "endurance" in parts:
        print("\nThe server with many streams at once, and many releases in turn")
        endurance.main([])
    if "explorer" in parts:
        print("\nThe explorer of podcast transcripts, and of seven times as many")
        many_entities.main(options.data)
    if "lazy" in parts:
        print("\nWhat lazy takes beside global at equal coverage of gold assertions (stand-in)")
        lazy.main(options.data)
    if "chnsw" in parts:
        print("\nC-HNSW against one HNSW for each layer")
        chnsw.main([])
    if "model" in parts:
        _model(options.data)
    if "changes" in parts:
        _changes(options.data)
    if "troubles" in parts:
        print("\nThe sample corpus indexed while the model misbehaves in every known way")
        troubles.main()
    if "plan" in parts:
        print("\nWhat plan says beside what is then spent on a strict stand-in")
        plan.main(options.data)
    if "scale" in parts:
        print("\nHow cost grows with the corpus (embedded default, through Dagster)")
        scale.main(options)


def _changes(data: Path) -> None:
    print("\nOne per cent more podcast transcripts, by a model (through Dagster)")
    print(changing_corpus.describe_growth(changing_corpus.growing_by_one_percent(data)))
    print("\nTwenty times one per cent of 500 transcripts")
    print(changing_corpus.describe_steps(changing_corpus.twenty_steps(data)))


def _model(data: Path) -> None:
    print("\nThe model client, against a server on loopback")
    print(llm_client.describe(llm_client.llm_client_cost()))
    print("\nIndexing podcast transcripts by a model that answers at once (through Dagster)")
    found = model_index.model_index_cost(data)
    print(model_index.describe(found))
    _print_stages(found["fresh"])


def _speed(data: Path) -> None:
    print("\nIndexing the podcast corpus (embedded default, through Dagster)")
    with tempfile.TemporaryDirectory() as place:
        files = podcast_files(data, Path(place) / "all")
        for share in (4, 2, 1):
            part = Path(place) / f"part{share}"
            part.mkdir()
            for file in files[: len(files) // share]:
                shutil.copy(file, part)
            _print_speed(index_speed(part, Path(place) / f"home{share}"), detailed=share == 1)


def _print_speed(found: dict, *, detailed: bool) -> None:
    counts = ", ".join(f"{n:,} {name}" for name, n in found["counts"].items())
    print(
        f"{counts}: {found['wall']:.1f} s, {found['cpu']:.1f} s CPU, "
        f"{found['peak_mb']:,.0f} MB memory, {found['disk_mb']:,.0f} MB disk"
    )
    _print_stages(found)
    if detailed:
        for row in found["levels"]:
            print(
                f"    level {row['level']}: {row['communities']:,} communities, "
                f"{row['reports']:,} reports, largest {row['largest']:,}"
            )


def _print_stages(found: dict) -> None:
    for name, spent in found["stages"].items():
        print(f"    {name:<13}{spent['wall']:7.2f} s {spent['cpu']:7.2f} s CPU")


if __name__ == "__main__":
    main()
