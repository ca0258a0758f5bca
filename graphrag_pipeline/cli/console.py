"""What the command line prints: tables a person can use, or JSON for a script.

Results go to standard output, progress and notes to standard error. Lines are wrapped on a
terminal only; a file or pipe gets them whole.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from graphrag_pipeline.core import rows as rows_as_text
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.progress import Listener, listening
from graphrag_pipeline.core.rows import one_line

if TYPE_CHECKING:
    from graphrag_pipeline.exchange.exporting import Export
    from graphrag_pipeline.orchestration.runs import MartsOutcome
    from graphrag_pipeline.pages.evaluation import WrittenEvaluation
    from graphrag_pipeline.pages.explorer import WrittenPage
    from graphrag_pipeline.pages.overview import WrittenReport
    from graphrag_pipeline.planning.plan import Plan
    from graphrag_pipeline.planning.tuning import Tuning
    from graphrag_pipeline.query import Answer, AnswerStream, Citation, Compared, Record
    from graphrag_pipeline.releases.diff import ReleaseDiff
    from graphrag_pipeline.releases.kept import KeptRelease, Rollback

_MOST_ROWS = 200
_MOST_LEFT_OUT = 10
_MOST_CITED = 20
_MOST_IN_A_BLOCK = 5
_MOST_OF_A_KIND = 2
_BLOCK_WIDTH = 80
_STAGE_WIDTH = len("attributed communities")
_UNPRINTABLE = {n: None for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}
_COUNTED = {
    "add": "file added",
    "change": "file changed",
    "remove": "file removed",
}
_COUNTED_IN_RELEASES = (
    ("document", "documents"),
    ("entity", "entities"),
    ("relationship", "relationships"),
    ("report", "reports"),
)
_NOT_IMPORTED = frozenset(
    (
        "relationships_without_entity",
        "claims_without_source",
        "self_relationships",
        "malformed_lines",
        "malformed_entities",
        "malformed_triples",
    )
)


class _Output(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


out = _Output(highlight=False, markup=False, emoji=False)
err = _Output(stderr=True, highlight=False, markup=False, emoji=False)


class StageTimes:
    """Seconds spent in each stage, however the stages take turns."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._spent: dict[str, float] = {}
        self._last = ("", 0, self._started)

    def hear(self, stage: str, done: int, total: int) -> None:
        """Take note of a stage's progress."""
        now = time.perf_counter()
        last_stage, last_done, since = self._last
        worked = stage == last_stage and done > last_done
        self._spent[stage] = self._spent.get(stage, 0.0) + (now - since if worked else 0.0)
        self._last = (stage, done, now)

    def of(self, stage: str) -> float:
        """Return the seconds of one stage so far."""
        return self._spent.get(stage, 0.0)

    def by_stage(self) -> dict[str, float]:
        """Return the seconds of each stage, and of everything as ``total``."""
        total = time.perf_counter() - self._started
        return {**{s: round(n, 2) for s, n in self._spent.items()}, "total": round(total, 2)}


@contextlib.contextmanager
def progress(start: str) -> Iterator[StageTimes]:
    """Show on standard error how far each stage is while the body runs.

    On a terminal each stage has a bar, below the line ``start`` that stands until the first stage
    begins; elsewhere each stage is one line when it is done. Yields the seconds of the stages.
    """
    times = StageTimes()
    with _bars(times, start) if err.is_terminal else _lines(times) as hear, listening(hear):
        yield times


@contextlib.contextmanager
def _lines(times: StageTimes) -> Iterator[Listener]:
    finished = set()

    def hear(stage: str, done: int, total: int) -> None:
        times.hear(stage, done, total)
        if done >= total and stage not in finished:
            finished.add(stage)
            note(f"{stage:<{_STAGE_WIDTH}} {done}/{total} {times.of(stage):7.1f} s")

    yield hear


@contextlib.contextmanager
def _bars(times: StageTimes, start: str) -> Iterator[Listener]:
    bars = Progress(
        TextColumn(f"{{task.description:<{_STAGE_WIDTH}}}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
    )
    tasks: dict[str, Any] = {}
    first = bars.add_task(start, total=None)

    def hear(stage: str, done: int, total: int) -> None:
        times.hear(stage, done, total)
        bars.update(first, visible=False)
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=done, total=total)

    with bars:
        yield hear
        bars.update(first, visible=False)


def say(text: str = "", style: str | None = None) -> None:
    """Print a text on standard output: wrapped at words on a terminal, else whole."""
    out.print(Text(text), style=style, soft_wrap=not out.is_terminal)


def confirm(cost: float, most: float, see: str) -> None:
    """Ask whether to spend more than ``most`` dollars; ``see`` is the command that says on what.

    Raises InputError if the answer is no, or if there is nobody to ask.
    """
    import typer

    if not sys.stdin.isatty():
        raise InputError(
            f"the run may cost ${cost:.2f}, more than llm.confirm_cost ({most:g}): see "
            f"{see}, then run it again with --yes"
        )
    if not typer.confirm("Go on?", err=True):
        raise InputError("nothing was started and nothing was spent")


def note(text: str) -> None:
    """Print a remark on standard error, where it does not mix with results."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(rows_as_text.to_json(value) + "\n")


def show_records(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as a JSON list of objects."""
    show_json(rows_as_text.records(names, rows))


def show_csv(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as CSV with a header."""
    rows_as_text.write_csv(sys.stdout, names, rows)


def show_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as a table that fits the terminal; of very many only the first."""
    is_cut = rows_as_text.print_rows(names, rows[:_MOST_ROWS])
    sys.stdout.flush()
    if not rows:
        note("no rows")
    if len(rows) > _MOST_ROWS:
        note(f"first {_MOST_ROWS} of {len(rows):,} rows; --format csv or json gives all")
    elif is_cut:
        note("long values are cut; --format csv or json gives them whole")


def show_index(summary: dict[str, Any]) -> None:
    """Print what an index run built."""
    if "imported" in summary:
        _show_imported(summary["imported"])
    elif "changes" in summary:
        _show_changes(summary)
    _show_counts(summary)
    _show_left_out(summary)
    _show_absent(summary)
    _show_failed(summary)
    _show_estimate(summary)
    _show_seconds(summary["seconds"])
    _show_published(summary)


def show_status(summary: dict[str, Any]) -> None:
    """Print the state of the index."""
    _show_fact("home", summary["home"])
    if not summary["indexed"]:
        _show_published(summary)
        say("Nothing is indexed yet: run graphrag-pipeline index FOLDER")
        return
    _show_counts(summary)
    _show_spent(summary)
    _show_failed(summary)
    _show_estimate(summary)
    pending = len(summary["pending_batches"])
    _show_fact("pending", _number(pending, "batch", "batches"))
    _show_left_out(summary)
    _show_absent(summary)
    _show_published(summary)
    if pending or summary["refresh_needed"]:
        say("The published index is behind: run graphrag-pipeline index FOLDER")


def plan_values(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values."""
    return {**asdict(plan), **_totals(plan)}


def plan_total(plan: Plan) -> str:
    """Return in one line what a plan comes to."""
    return f"about {_amount(_totals(plan))}"


def _totals(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in ("calls", "cached", "tokens", "cost")}


def show_plan(plan: Plan) -> None:
    """Print what the next run would do, and on which assumptions."""
    changes = [_number(number, _COUNTED[name]) for name, number in plan.changes.items() if number]
    say(", ".join(changes) or "No file was added, changed or removed since the last run.")
    if not plan.is_due:
        say("There is nothing to do.")
        return
    if plan.pending_batches:
        _show_fact("pending", _number(plan.pending_batches, "batch", "batches"))
    if plan.documents or plan.unreadable:
        _show_fact("documents", f"{plan.documents:,} to read, {plan.unreadable:,} unreadable")
        _show_fact("chunks", f"{plan.chunks:,}, of which {plan.to_extract:,} to extract from")
    if plan.to_retry:
        _show_fact("to retry", f"{plan.to_retry:,} that failed before, counted below")
    if not plan.stages:
        say("No model call would be made, and nothing spent.")
        return
    cached = ("cached",) if plan.cached else ()
    rows_as_text.print_rows(
        ("stage", "model", "calls", *cached, "tokens in", "out", "cost"),
        [
            (s.stage, s.model, s.calls, *(s.cached for _ in cached), s.prompt_tokens,
             s.completion_tokens, _money(s.cost))
            for s in plan.stages
        ],
    )  # fmt: skip
    _show_fact("total", plan_total(plan))
    say("Assumed:")
    for assumption in plan.assumptions:
        say(f"  {assumption}")


def _money(cost: float | None) -> str:
    return "unknown cost" if cost is None else f"${cost:.4f}" if cost < 1 else f"${cost:,.2f}"


def show_tuning(tuning: Tuning) -> None:
    """Print what a model proposed for the prompts, and where it was written."""
    say(f"field          {tuning.domain}")
    say(f"language       {tuning.language}")
    say(f"entity types   {', '.join(tuning.entity_types)}")
    say(f"persona        {tuning.persona}")
    say(f"rating         {tuning.report_rating}")
    say(f"examples       {tuning.n_examples}")
    for path in tuning.files:
        say(f"wrote          {path}")
    say("Read them, edit them, and copy the lines of settings.toml into graphrag.toml.")


def show_answer(answer: Answer) -> None:
    """Print an answer, the places it cites, what is amiss with it, and what it cost."""
    say(answer.text.translate(_UNPRINTABLE).rstrip())
    _show_grounds(answer)


def show_stream(stream: AnswerStream) -> None:
    """Print an answer as it is written, then what :func:`show_answer` prints below it."""
    last = "\n"
    try:
        for piece in stream:
            last = piece[-1:] or last
            sys.stdout.write(piece.translate(_UNPRINTABLE))
            sys.stdout.flush()
    finally:
        sys.stdout.write("" if last == "\n" else "\n")
    _show_grounds(stream.answer)


def show_compared(found: Sequence[Compared]) -> None:
    """Print a block for each method: what it answered or found, and what that took."""
    for place, compared in enumerate(found):
        if place:
            say()
        say(f"── {compared.method} ".ljust(_BLOCK_WIDTH, "─"), style="bold")
        if compared.retrieval is None:
            say(one_line(compared.error), style="yellow")
            continue
        if compared.answer is not None:
            say(compared.answer.text.translate(_UNPRINTABLE).rstrip())
            _show_first_citations(compared.answer.citations)
        else:
            _show_first_records(compared.retrieval.records)
        for line in _amiss(compared.answer) if compared.answer else ():
            say(line, style="yellow")
        for step in compared.retrieval.steps:
            _show_whole(one_line(step), style="dim")
        for line in _found(compared):
            _show_whole(line, style="dim")


def _show_first_citations(citations: Sequence[Citation]) -> None:
    if citations:
        say()
    for citation in citations[:_MOST_IN_A_BLOCK]:
        _show_citation(citation)
    _show_more(len(citations) - _MOST_IN_A_BLOCK, "; --json gives all")


def _show_first_records(records: Sequence[Record]) -> None:
    kinds = {record.kind: [r for r in records if r.kind == record.kind] for record in records}
    of_each = _MOST_IN_A_BLOCK if len(kinds) < 2 else _MOST_OF_A_KIND
    shown = [record for of_kind in kinds.values() for record in of_kind[:of_each]]
    for record in shown:
        line = one_line(f"{record.kind} {record.number} · {record.title}: {record.text}")
        say(line if len(line) <= _BLOCK_WIDTH else f"{line[: _BLOCK_WIDTH - 1]}…")
    _show_more(len(records) - len(shown), "; --json gives all")
    if not records:
        say("nothing found")


def _found(compared: Compared) -> tuple[str, str]:
    """Return what a method found and what that took, a line each."""
    plural = {"entity": "entities", "summary": "summaries"}
    kinds = ", ".join(_number(n, kind, plural.get(kind, "")) for kind, n in compared.kinds.items())
    seconds = f"{compared.seconds:.2f} s"
    took = [f"{compared.context_tokens:,} tokens of context"]
    took += [_calls(compared.answer)] if compared.answer and compared.answer.model_calls else []
    return kinds or "no records", "; ".join([*took, seconds])


def _show_grounds(answer: Answer) -> None:
    """Print what stands below an answer."""
    if answer.citations:
        say()
    for citation in answer.citations[:_MOST_CITED]:
        _show_citation(citation)
    _show_more(len(answer.citations) - _MOST_CITED, "; --json gives all")
    if amiss := _amiss(answer):
        say()
    for line in amiss:
        say(line, style="yellow")
    say()
    for step in answer.retrieval.steps:
        _show_whole(one_line(step), style="dim")
    say(f"{answer.method} search, release {answer.release}", style="dim")
    say(f"{_calls(answer)}, {_seconds(answer.timings)}", style="dim")


def _show_citation(citation: Citation) -> None:
    place = citation.uri or f"community report {citation.report_id}"
    span = f" {citation.start_char}–{citation.end_char}" if citation.uri else ""
    title = " · ".join(filter(None, [one_line(citation.document_title), *_referring(citation)]))
    number = f"[{citation.number}]"
    indent = "\n" + " " * (len(number) + 1) if title else ""
    _show_whole(f"{number} {title}{indent}{one_line(place)}{span}", style="dim")


def _referring(citation: Citation) -> list[str]:
    """Return the references that a place supports, those of one section together."""
    numbers: dict[str, list[str]] = {}
    for reference in citation.references:
        section, _, number = reference.partition(" ")
        numbers.setdefault(section, []).append(number.strip("()"))
    return [f"{section} ({', '.join(of)})" for section, of in numbers.items()]


def _amiss(answer: Answer) -> list[str]:
    """Return lines that say which references went, and which steps of the model failed.

    What such a step was to give is left out of the answer, or comes by a rule in its place.
    """
    removed, failed = answer.references_removed, answer.failures
    lines = []
    if removed:
        what = _number(removed, "reference")
        lines.append(f"{what} removed that named nothing the model was shown")
    if failed:
        lines.append(f"{_number(len(failed), 'model step')} failed:")
    lines += [f"  {one_line(failure)}" for failure in failed[:_MOST_LEFT_OUT]]
    if len(failed) > _MOST_LEFT_OUT:
        lines.append(f"  and {len(failed) - _MOST_LEFT_OUT:,} more")
    return lines


def _show_more(left: int, how: str = "") -> None:
    if left > 0:
        say(f"  and {left:,} more{how}", style="dim")


def _calls(answer: Answer) -> str:
    """Return what the calls of an answer came to, in one line."""
    cost = "unknown cost" if answer.cost is None else f"${answer.cost:.4f}"
    cached = f" ({answer.cached_calls:,} more from the cache)" if answer.cached_calls else ""
    parts = [f"{_number(answer.model_calls, 'model call')}{cached}", cost]
    if answer.model_calls:
        used = f"{answer.prompt_tokens:,} tokens in, {answer.completion_tokens:,} out"
        parts.insert(1, used)
    return ", ".join(parts)


def _seconds(timings: Mapping[str, float]) -> str:
    total = f"{timings.get('total', 0.0):.2f} s"
    if not timings.get("first_piece"):
        return total
    retrieval, first = timings["retrieve"], timings["first_piece"]
    return f"{total} (retrieval {retrieval:.2f} s, first words after {first:.2f} s)"


def show_releases(releases: Sequence[KeptRelease]) -> None:
    """Print the releases that are kept, newest first, the published one pointed out."""
    for release in releases:
        state = "published" if release.is_current else "withdrawn" if release.is_withdrawn else ""
        made = release.created_at.strftime("%Y-%m-%d %H:%M UTC")
        counts = [
            _number(release.counts[plural], noun, plural) for noun, plural in _COUNTED_IN_RELEASES
        ]
        _show_whole(f"{release.id}  {state}".rstrip())
        _show_whole(f"  {made}, {', '.join(counts)}, {release.n_bytes / 1e6:.1f} MB", style="dim")


def show_rollback(done: Rollback) -> None:
    """Print what a rollback did, and how to undo it."""
    say(f"Release {done.now} is published again; it stays until the index changes.")
    if done.before:
        _show_whole(f"To take this back: graphrag-pipeline rollback {done.before}")


def show_marts(done: MartsOutcome) -> None:
    """Print what the marts hold, and whether they were built now."""
    if done.built:
        warned = f", {done.tests_warned} warned" if done.tests_warned else ""
        say(f"Built {len(done.rows)} marts; {done.tests_passed} data tests passed{warned}.")
    else:
        say("Nothing new is published or evaluated: the marts stay as they are.")
    _show_fact("release", done.release)
    _show_fact("file", done.file)
    rows_as_text.print_rows(("mart", "rows"), list(done.rows.items()))


def show_diff(diff: ReleaseDiff) -> None:
    """Print what entered, left and changed between two releases."""
    _show_fact("before", diff.before)
    _show_fact("after", diff.after)
    rows_as_text.print_rows(
        ("", "before", "after", "entered", "left", "changed"),
        [
            (name.replace("_", " "), t.before, t.after, t.entered, t.left, t.changed)
            for name, t in diff.tables.items()
        ],
    )
    for name, table in diff.tables.items():
        for change, first in table.first.items():
            if first:
                more = getattr(table, change) - len(first)
                _show_whole(f"{name.replace('_', ' ')} {change}:")
                for title in first:
                    _show_whole(f"  {one_line(title)}")
                if more:
                    _show_whole(f"  and {more:,} more")


def show_export(done: Export) -> None:
    """Print what was written, what the format could not hold, and how to use it."""
    for file in done.files:
        counts = ", ".join(f"{n:,} {what}" for what, n in file.rows.items())
        _show_whole(f"{file.name:<28}{file.n_bytes / 1e6:>8.2f} MB  {counts}".rstrip())
    _show_whole(f"Wrote {done.path} from release {done.release}")
    if done.lost:
        say(f"Not in it: {'; '.join(done.lost)}.", style="dim")
    _show_whole(f"Use it with: {done.next}", style="dim")


def show_page(done: WrittenPage) -> None:
    """Print where the page of the graph is, and what it shows."""
    _show_whole(f"Wrote {done.path} ({done.n_bytes / 1e6:.2f} MB) from release {done.release}")
    say(
        f"{done.n_entities:,} entities, {done.n_relationships:,} relationships, "
        f"{done.n_communities:,} communities. Open it in a browser; it needs no network.",
        style="dim",
    )


def show_report(done: WrittenReport) -> None:
    """Print where the overview of a corpus is."""
    _show_whole(f"Wrote {done.path} ({done.n_bytes / 1e6:.2f} MB) from release {done.release}")
    say("Open it in a browser; it needs no network and no other file.", style="dim")


def show_evaluation(done: WrittenEvaluation) -> None:
    """Print where the page of an experiment is, and what came out of it."""
    for sentence in done.finding:
        say(sentence)
    _show_whole(f"Wrote {done.path} ({done.n_bytes / 1e6:.2f} MB), experiment {done.experiment}")
    say("Open it in a browser; it needs no network and no other file.", style="dim")


def _show_whole(text: str, style: str | None = None) -> None:
    """Print lines that must be copied in one piece: the terminal may break them, we never do."""
    out.print(Text(text), style=style, soft_wrap=True)


def _show_fact(name: str, value: str) -> None:
    _show_whole(f"{name:<11}{value}")


def _show_imported(imported: dict[str, Any]) -> None:
    counts = {name: number for name, number in imported["counts"].items() if number}
    for warning in imported["warnings"]:
        note(f"warning: {warning}")
    if imported["done_before"]:
        say("The same files were imported before.")
        return
    for what, left_out in (("imported", False), ("left out", True)):
        facts = [
            f"{name.replace('_', ' ')} {number:,}"
            for name, number in counts.items()
            if (name in _NOT_IMPORTED) is left_out
        ]
        if facts:
            say(f"{what}: {', '.join(facts)}")


def _show_changes(summary: dict[str, Any]) -> None:
    changes = {name: number for name, number in summary["changes"].items() if number}
    if changes:
        parts = [_number(number, _COUNTED[name]) for name, number in changes.items()]
        say(", ".join(parts))
    elif summary["batches_run"]:
        say(f"{_number(summary['batches_run'], 'batch', 'batches')} indexed again")
    else:
        say("No file was added, changed or removed since the last run.")
        if summary.get("reclustered"):
            say("The whole graph was clustered anew.")
        elif summary.get("new_release"):
            say("What settings or aliases.csv changed, or a run left unfinished, is done now.")


def _show_counts(summary: dict[str, Any]) -> None:
    for name in ("documents", "chunks", "entities", "relationships", "claims"):
        if summary[name] or name != "claims":
            say(f"{name:<14}{summary[name]:>10,}")
    if not summary["levels"]:
        say(f"{'communities':<14}{0:>10}")
        return
    names = ("level", "communities", "reports", "largest")
    rows_as_text.print_rows(names, [[row[name] for name in names] for row in summary["levels"]])
    if summary["structures"]:
        names = ("name", "rows")
        rows = [[row[name] for name in names] for row in summary["structures"]]
        rows_as_text.print_rows(("also", "rows"), rows)


def _show_spent(summary: dict[str, Any]) -> None:
    """Print what the model cost until now."""
    if summary["model_calls"]:
        names = ("stage", "calls", "cached", "failed", "tokens", "cost")
        rows_as_text.print_rows(
            names,
            [
                (*(row[name] for name in names[:-1]), _money(row["cost"]))
                for row in summary["model_calls"]
            ],
        )


def _show_failed(summary: dict[str, Any]) -> None:
    """Print what the model failed at."""
    if summary["failed_chunks"]:
        say(
            f"{_number(summary['failed_chunks'], 'chunk')} could not be extracted (see the table "
            "extractions); the next run tries again"
        )
    if summary["failed_reports"]:
        say(
            f"{_number(summary['failed_reports'], 'report')} could not be written (see the table "
            "report_failures); the next run tries again"
        )


def _show_estimate(summary: dict[str, Any]) -> None:
    """Print what the last run was estimated to take, and what it took."""
    estimate = summary["estimate"]
    if estimate is None:
        if summary["model_calls"]:
            _show_fact("estimate", "none: only runs of the command index are estimated")
        return
    stages = estimate["stages"]
    if len(stages) > 1:
        names = ("last run", "calls", "took", "tokens", "took", "cost", "took")
        rows_as_text.print_rows(names, [_estimate_row(stage) for stage in stages])
    took = "took" if estimate["finished"] else "took until now"
    expected, actual = (_amount(estimate["total"][side]) for side in ("estimated", "actual"))
    _show_fact("estimated", f"{expected}; {took} {actual}")
    if later := estimate["later_calls"]:
        _show_fact("", f"{_number(later, 'call')} since, by runs that had no estimate")


def _estimate_row(stage: dict[str, Any]) -> tuple[object, ...]:
    expected, actual = stage["estimated"], stage["actual"]
    return (
        stage["stage"],
        *(side[name] for name in ("calls", "tokens") for side in (expected, actual)),
        *(_money(side["cost"]) for side in (expected, actual)),
    )


def _amount(took: dict[str, Any]) -> str:
    cached = f" ({took['cached']:,} more in the cache)" if took["cached"] else ""
    calls = _number(took["calls"], "call")
    return f"{calls}{cached}, {took['tokens']:,} tokens, {_money(took['cost'])}"


def _show_left_out(summary: dict[str, Any]) -> None:
    bad = summary["quarantined"]
    if not bad:
        return
    files = sum(not row["is_record"] for row in bad)
    kinds = [(files, "file"), (len(bad) - files, "record")]
    what = " and ".join(_number(number, kind) for number, kind in kinds if number)
    say(f"{what} could not be read (see the table quarantine):")
    for row in bad[:_MOST_LEFT_OUT]:
        _show_whole(f"  {one_line(row['uri'])}: {one_line(row['reason'])}")
    if len(bad) > _MOST_LEFT_OUT:
        say(f"  and {len(bad) - _MOST_LEFT_OUT:,} more")


def _show_absent(summary: dict[str, Any]) -> None:
    """Print the titles of the user's aliases that may be misspelt."""
    absent = [one_line(title) for title in summary["titles_not_in_the_corpus"]]
    if absent:
        named = ", ".join(absent[:_MOST_LEFT_OUT])
        _show_whole(f"aliases.csv names what no document mentions: {named}")
        _show_more(len(absent) - _MOST_LEFT_OUT)


def _show_seconds(seconds: dict[str, float]) -> None:
    parts = ", ".join(f"{name} {spent:.1f}" for name, spent in seconds.items() if name != "total")
    _show_fact("seconds", f"{seconds['total']:.1f}")
    if parts:
        say(f"  {parts}")


def _show_published(summary: dict[str, Any]) -> None:
    release = summary["published"]
    if not release:
        _show_fact("published", "nothing yet")
        return
    moment = release["created_at"].replace("T", " ").replace("Z", " UTC")
    _show_fact("published", f"release {release['id']}")
    _show_fact("", moment)
    if summary["rolled_back_from"]:
        _show_fact("", f"rolled back from {summary['rolled_back_from']} until the index changes")


def _number(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: 1 batch, 2 files added."""
    first, _, rest = noun.partition(" ")
    many = plural or (f"{first}s {rest}" if first == "file" and rest else f"{noun}s")
    return f"{count:,} {noun if count == 1 else many.strip()}"
